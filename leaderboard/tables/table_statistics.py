"""What the rows of a table's entries can carry: rank sets, ties, who is ahead of whom, all of it on OOD.

Every statement is made on the joint, cluster-robust covariance of the entries' scores on the same rows
(benchmarks/statistics/joint_covariance.py); none depends on the order in which entries were submitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.statistics.best_of import best_of, common_correlation
from ...benchmarks.statistics.holm import holm
from ...benchmarks.statistics.interval import paired_difference
from ...benchmarks.statistics.joint_covariance import JointCovariance, joint_covariance
from ...benchmarks.statistics.margin import LEVEL
from ...benchmarks.statistics.paired_test import paired_t
from ...benchmarks.statistics.ranks import Better, rank_sets
from ...benchmarks.statistics.sample import Sample
from ...benchmarks.statistics.ties import letters, tie_groups
from .row_scores import EntryRows


@dataclass(frozen=True, kw_only=True)
class Place:
    """An entry's place in its table. rank: the lowest and the highest rank in its confidence set; ties: the letters of
    its tie groups; best: the share of draws in which it is first; behind: it minus the table's first (`Pairs`), None
    for the first itself. Without a rank set all of it is empty."""

    rank: tuple[int, int] | None = None
    ties: str = ""
    best: float | None = None
    behind: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of a table's ranked entries, by the max-t rule. order: the entries; values (M,); reach (M, M): half the
    width of each pair's interval; differs (M, M): which differ significantly; bounds: of the scores' scale."""

    order: tuple[str, ...]
    values: NDArray[np.float64]
    reach: NDArray[np.float64]
    differs: NDArray[np.bool_]
    bounds: tuple[float, float]

    @cached_property
    def place(self) -> dict[str, int]:
        return {entry: place for place, entry in enumerate(self.order)}

    def apart(self, this: str, other: str) -> dict[str, Any] | None:
        """The value of one entry minus another's, with the interval of the max-t rule, which holds for all pairs of the
        table at once, cut where no difference on the scale can lie; `told_apart`: whether it excludes zero. None where
        one of them has no rank set."""
        if this not in self.place or other not in self.place:
            return None
        i, j = self.place[this], self.place[other]
        widest = self.bounds[1] - self.bounds[0]
        value, reach = float(self.values[i] - self.values[j]), float(self.reach[i, j])
        ends = {"value": value, "low": max(-widest, value - reach), "high": min(widest, value + reach)}
        record = {name: round(number, 6) + 0.0 for name, number in ends.items()}
        return record | {"told_apart": bool(self.differs[i, j])}


@dataclass(frozen=True)
class Ranked:
    """The entries of a table that could be ranked, their pairs, and `left_out`: those that could not, each with the
    reason."""

    places: dict[str, Place]
    joint_covariance: JointCovariance | None
    order: tuple[str, ...]
    left_out: dict[str, str]
    pairs: Pairs | None = None

    def covariance_of(self, entries: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The joint covariance of some of the entries, (k, k)."""
        assert self.joint_covariance is not None
        assert self.pairs is not None
        at = np.array([self.pairs.place[entry] for entry in entries])
        found: np.ndarray[Any, np.dtype[np.float64]] = self.joint_covariance.covariance[np.ix_(at, at)]
        return found


def ranked(identity: str, better: Better, rows: Mapping[str, EntryRows], order: Sequence[str]) -> Ranked:
    """The places of a table's entries, from their rows. `order` lists them as the table does, best value first; the
    draws are seeded by the table's identity."""
    here, left_out = [], {}
    for entry in order:
        if entry not in rows:
            continue
        if isfinite(rows[entry].ood.spread().variance):
            here.append(entry)
        else:
            left_out[entry] = "its score has no variance that is known"
    if not here:
        return Ranked({}, None, (), left_out)
    samples = [rows[entry].ood for entry in here]
    together = joint_covariance(samples)
    sets = rank_sets(together, better, LEVEL, f"table/{identity}")
    tied = letters(tie_groups(together.values, sets.differs, better), len(here))
    pairs = Pairs(tuple(here), together.values, sets.pairs.reach, sets.differs, samples[0].bounds)
    places = {
        entry: Place(
            rank=(int(sets.low[k]), int(sets.high[k])),
            ties=tied[k],
            best=round(float(sets.best[k]), 4),
            behind=None if k == 0 else pairs.apart(entry, here[0]),
        )
        for k, entry in enumerate(here)
    }
    return Ranked(places, together, tuple(here), left_out, pairs)


def against(found: Ranked, baseline: str, better: Better, rows: Mapping[str, EntryRows]) -> dict[str, dict[str, Any]]:
    """Every other entry minus the baseline, with p-values adjusted by Holm (1979) for all of them, and a verdict:
    better, worse, or none. Nobody else's entry is in a p before it is adjusted."""
    others = [entry for entry in found.order if entry != baseline]
    if baseline not in found.places or not others:
        return {}
    pairs = [_compared(rows[entry].ood, rows[baseline].ood) for entry in others]
    result = {}
    for entry, (raw, record), adjusted in zip(others, pairs, holm([p for p, _ in pairs]), strict=True):
        ahead = (record["value"] > 0) == (better == "higher")
        verdict = "none" if adjusted > 1 - LEVEL else "better" if ahead else "worse"
        result[entry] = record | {"p": _digits(raw), "p_holm": _digits(adjusted), "verdict": verdict}
    return result


def _compared(left: Sample, right: Sample) -> tuple[float, dict[str, Any]]:
    record = paired_difference(left, right).to_dict()
    record.pop("per_seed", None)
    return paired_t(left, right)[0], record


def _digits(p: float) -> float:
    """A p-value with six digits: more are the arithmetic's."""
    return float(f"{p:.6g}")


def optimism(found: Ranked, entries: Sequence[str], attempts: int) -> float | None:
    """How far the best of a team's attempts is expected above the truth, were all of them equally good: from the errors
    of those of its `entries` that are ranked; None for a single attempt, or where none is ranked."""
    known = [entry for entry in entries if entry in found.places]
    if attempts < 2 or not known:
        return None
    covariance = found.covariance_of(known)
    errors = np.sqrt(np.diag(covariance)).tolist()
    # An attempt that was withdrawn erred as the others did.
    errors += [float(np.median(errors))] * (attempts - len(errors))
    return round(best_of(errors, common_correlation(covariance)).optimism, 6)
