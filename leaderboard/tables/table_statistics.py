"""Statistics of a table's entries on OOD rows: rank sets, tie groups, pairwise differences.

All of them use the joint, cluster-robust covariance of the entries' scores on the same rows
(benchmarks/statistics/joint_covariance.py); none depends on the order of submission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.statistics.best_of import compute_common_correlation, estimate_optimism
from ...benchmarks.statistics.confidence_interval import LEVEL
from ...benchmarks.statistics.holm import adjust_by_holm
from ...benchmarks.statistics.interval import estimate_paired_difference
from ...benchmarks.statistics.joint_covariance import JointCovariance, estimate_joint_covariance
from ...benchmarks.statistics.paired_test import run_paired_t
from ...benchmarks.statistics.ranks import Better, compute_rank_sets
from ...benchmarks.statistics.sample import Sample
from ...benchmarks.statistics.ties import find_tie_groups, format_group_letters
from .row_scores import EntryRows


@dataclass(frozen=True, kw_only=True)
class Placement:
    """An entry's place in its table. rank: the lowest and the highest rank in its confidence set; ties: the letters of
    its tie groups; best: the share of draws in which it is first; behind: its score minus that of the table's first
    entry (`Pairs`), None for the first itself. All are empty for an entry without a rank set."""

    rank: tuple[int, int] | None = None
    ties: str = ""
    best: float | None = None
    behind: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of a table's ranked entries, by the max-t rule. order: the entries; values (M,); reach (M, M): half the
    width of each pair's interval; differs (M, M): whether the pair differs significantly; bounds: of the score."""

    order: tuple[str, ...]
    values: NDArray[np.float64]
    reach: NDArray[np.float64]
    differs: NDArray[np.bool_]
    bounds: tuple[float, float]

    @cached_property
    def index_by_entry(self) -> dict[str, int]:
        return {entry: index for index, entry in enumerate(self.order)}

    def apart(self, this: str, other: str) -> dict[str, Any] | None:
        """The value of one entry minus another's, with the max-t interval, which holds for all pairs of the table
        simultaneously, clipped to the possible differences; `told_apart`: whether it excludes zero. None if one of them
        has no rank set."""
        if this not in self.index_by_entry or other not in self.index_by_entry:
            return None
        i, j = self.index_by_entry[this], self.index_by_entry[other]
        widest = self.bounds[1] - self.bounds[0]
        value, reach = float(self.values[i] - self.values[j]), float(self.reach[i, j])
        ends = {"value": value, "low": max(-widest, value - reach), "high": min(widest, value + reach)}
        record = {name: round(number, 6) + 0.0 for name, number in ends.items()}
        return record | {"told_apart": bool(self.differs[i, j])}


@dataclass(frozen=True)
class RankedEntries:
    """The entries of a table that could be ranked and their pairs. left_out: the entries that could not, each with the
    reason."""

    places: dict[str, Placement]
    joint_covariance: JointCovariance | None
    order: tuple[str, ...]
    left_out: dict[str, str]
    pairs: Pairs | None = None

    def covariance_of(self, entries: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The joint covariance of some of the entries, (k, k)."""
        assert self.joint_covariance is not None
        assert self.pairs is not None
        at = np.array([self.pairs.index_by_entry[entry] for entry in entries])
        covariance: np.ndarray[Any, np.dtype[np.float64]] = self.joint_covariance.covariance[np.ix_(at, at)]
        return covariance


def rank_entries(identity: str, better: Better, rows: Mapping[str, EntryRows], order: Sequence[str]) -> RankedEntries:
    """Rank a table's entries from their rows. `order` lists them as the table does, best value first; the draws are
    seeded by the table's identity."""
    scored_entries, left_out = [], {}
    for entry in order:
        if entry not in rows:
            continue
        if isfinite(rows[entry].ood.spread().variance):
            scored_entries.append(entry)
        else:
            left_out[entry] = "the variance of its score is unknown"
    if not scored_entries:
        return RankedEntries({}, None, (), left_out)
    samples = [rows[entry].ood for entry in scored_entries]
    covariance = estimate_joint_covariance(samples)
    sets = compute_rank_sets(covariance, better, LEVEL, f"table/{identity}")
    tied = format_group_letters(find_tie_groups(covariance.values, sets.differs, better), len(scored_entries))
    pairs = Pairs(tuple(scored_entries), covariance.values, sets.pairs.reach, sets.differs, samples[0].bounds)
    places = {
        entry: Placement(
            rank=(int(sets.low[k]), int(sets.high[k])),
            ties=tied[k],
            best=round(float(sets.best[k]), 4),
            behind=None if k == 0 else pairs.apart(entry, scored_entries[0]),
        )
        for k, entry in enumerate(scored_entries)
    }
    return RankedEntries(places, covariance, tuple(scored_entries), left_out, pairs)


def compare_with_baseline(
    ranking: RankedEntries, baseline: str, better: Better, rows: Mapping[str, EntryRows]
) -> dict[str, dict[str, Any]]:
    """Every other entry minus the baseline, with p-values adjusted for all of them by Holm (1979), and a verdict:
    better, worse, or none. An unadjusted p-value depends on no third entry."""
    others = [entry for entry in ranking.order if entry != baseline]
    if baseline not in ranking.places or not others:
        return {}
    pairs = [_compare_pair(rows[entry].ood, rows[baseline].ood) for entry in others]
    result = {}
    for entry, (raw, record), adjusted in zip(others, pairs, adjust_by_holm([p for p, _ in pairs]), strict=True):
        ahead = (record["value"] > 0) == (better == "higher")
        verdict = "none" if adjusted > 1 - LEVEL else "better" if ahead else "worse"
        result[entry] = record | {"p": _round_p_value(raw), "p_holm": _round_p_value(adjusted), "verdict": verdict}
    return result


def _compare_pair(left: Sample, right: Sample) -> tuple[float, dict[str, Any]]:
    record = estimate_paired_difference(left, right).to_dict()
    record.pop("per_seed", None)
    return run_paired_t(left, right)[0], record


def _round_p_value(p: float) -> float:
    """Round a p-value to six significant digits; further digits are rounding error."""
    return float(f"{p:.6g}")


def compute_optimism(ranking: RankedEntries, entries: Sequence[str], attempts: int) -> float | None:
    """The expected excess of the best of a team's attempts over its true value, if all of them were equally good: from
    the errors of its ranked `entries`; None for a single attempt, or if none is ranked."""
    known = [entry for entry in entries if entry in ranking.places]
    if attempts < 2 or not known:
        return None
    covariance = ranking.covariance_of(known)
    errors = np.sqrt(np.diag(covariance)).tolist()
    # Assume that withdrawn attempts had errors of the same size.
    errors += [float(np.median(errors))] * (attempts - len(errors))
    return round(estimate_optimism(errors, compute_common_correlation(covariance)).optimism, 6)
