"""Statistics of a table's entries on OOD rows: which entries are ranked, rank sets, tie groups, pairwise differences.

An entry is ranked, that is, rank sets are computed over it, if

1. it has no protocol violation (`EntryRows.odd`);
2. its seeds are those of the protocol, 0 to n - 1 (further seeds in that order are permitted);
3. every seed is better on ID than the best constant prediction (`EntryRows.floor`): none failed;
4. it is not below the plain baseline that the board declares: worse on ID beyond doubt (p < 0.001), and not better on
   OOD beyond doubt (a model may trade ID score for robustness);
5. on a board that accepts submissions without a token, its team has a key;
6. it is its team's only one: of a team's entries that satisfy 1 to 5, the newest whose card says `choose`, else the
   first.

All others are listed unranked, with the reason, and widen no rank set. No rule compares entrants with each other: 1 to
3 use cards and ID rows, 4 an entry that the operator declared, 6 the order of submission and a choice declared before
scoring. So rank sets are as valid as over a set of entries that was fixed beforehand (docs/statistics.md has
simulations with adversarial entries). Reference entries, which the board's operator declares in the ledger
(operations/submit.py), are always ranked, and so is every entry of a board of experiments.

All statistics use the joint, cluster-robust covariance of the entries' scores on the same rows
(benchmarks/statistics/joint_covariance.py); none depends on the order of submission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.statistics.best_of import compute_common_correlation, compute_expected_maximum
from ...benchmarks.statistics.interval import estimate_paired_difference
from ...benchmarks.statistics.joint_covariance import estimate_joint_covariance
from ...benchmarks.statistics.paired_test import adjust_by_holm, run_paired_t
from ...benchmarks.statistics.ranks import Better, compute_rank_sets, find_tie_groups, format_group_letters
from ...benchmarks.statistics.sample import Sample
from ...benchmarks.statistics.variance_estimate import LEVEL, compute_average
from ..entries import ScoredEntry
from .entry_rows import EntryRows

DOUBT = 0.001
"""The p-value below which an entry differs from the plain baseline beyond doubt. A level that depends on the number of
entries would let some remove others."""

ONE_A_TEAM = "its team is ranked by entry "


def find_unranked_entries(
    standings: Sequence[ScoredEntry],
    rows: Mapping[str, EntryRows],
    arrived: Mapping[str, int],
    baseline: str = "",
    signed: bool = False,
) -> dict[str, str]:
    """The entries of one identity that are not ranked, each with the reason. rows: their row scores; entries without
    row scores are not ranked either; arrived: each entry's position in the ledger; baseline: the model that the
    board declares as the plain baseline; signed: whether only teams with a key are ranked."""
    scored_rows = sorted(
        (standing for standing in standings if standing.entry in rows), key=lambda standing: arrived[standing.entry]
    )
    better: Better = "lower" if standings[0].score.better == "lower" else "higher"
    left_out: dict[str, str] = {}
    teams: dict[str, list[ScoredEntry]] = {}
    # Only a reference: anybody may name a model like the baseline.
    plain = next((rows[item.entry] for item in scored_rows if item.reference and item.score.model == baseline), None)
    for standing in scored_rows:
        if standing.reference:
            continue
        this = rows[standing.entry]
        if why := _find_violation(standing, this, better):
            left_out[standing.entry] = why
        elif plain is not None and _is_below(this, plain, better):
            left_out[standing.entry] = f"it is below the plain baseline, {baseline}"
        elif signed and not standing.team_key:
            left_out[standing.entry] = "its team has no key, and anyone may submit to this board (pack with --key FILE)"
        else:
            teams.setdefault(standing.team_identity, []).append(standing)
    for entries in teams.values():
        chosen = next((standing for standing in reversed(entries) if standing.choose), entries[0])
        for standing in entries:
            if standing is not chosen:
                left_out[standing.entry] = f"{ONE_A_TEAM}{chosen.entry}"
    return left_out


def _is_below(rows: EntryRows, plain: EntryRows, better: Better) -> bool:
    """Whether an entry is worse on ID than the plain baseline, and not better on OOD, each beyond doubt."""
    return _is_ahead(plain.id, rows.id, better) and not _is_ahead(rows.ood, plain.ood, better)


def _is_ahead(this: Sample, other: Sample, better: Better) -> bool:
    difference = compute_average(this.per_seed) - compute_average(other.per_seed)
    return (difference > 0) == (better == "higher") and run_paired_t(this, other)[0] < DOUBT


def _find_violation(standing: ScoredEntry, rows: EntryRows, better: Better) -> str:
    """The reason why an entry cannot be ranked, whatever its team's others; empty if there is none."""
    if rows.odd:
        return "; ".join(rows.odd)
    seeds, due = sorted(standing.score.seeds), standing.score.protocol_seeds
    if len(seeds) < due:
        cure = " (a deterministic model needs one: farshift evaluate --deterministic)" if len(seeds) == 1 else ""
        return f"it has {len(seeds)} of the protocol's {due} seeds{cure}"
    if seeds != list(range(len(seeds))):
        seed_list = ", ".join(map(str, seeds[:10])) + (" .." if len(seeds) > 10 else "")
        return f"its seeds are {seed_list}; the protocol's are 0 to {due - 1}"
    if rows.floor is None:
        return ""
    sign = 1 if better == "higher" else -1
    for seed, value in zip(standing.score.seeds, rows.id.per_seed, strict=True):
        if not sign * value > sign * rows.floor:
            return f"seed {seed} scores {value:.4g} on ID, no better than a constant prediction ({rows.floor:.4g})"
    return ""


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of a table's ranked entries, by the max-t rule. order: the entries; values (M,); reach (M, M): half the
    width of each pair's interval; differs (M, M): whether the pair differs significantly; covariance (M, M): of the
    values; bounds: of the score."""

    order: tuple[str, ...]
    values: NDArray[np.float64]
    reach: NDArray[np.float64]
    differs: NDArray[np.bool_]
    covariance: NDArray[np.float64]
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
class Ranking:
    """The places of a table's ranked entries, best value first, as fields of `Row`, and their pairs. left_out: entries
    whose variance is unknown, with the reason."""

    places: dict[str, dict[str, Any]] = field(default_factory=dict)
    pairs: Pairs | None = None
    left_out: dict[str, str] = field(default_factory=dict)


def rank_entries(identity: str, better: Better, rows: Mapping[str, EntryRows], order: Sequence[str]) -> Ranking:
    """Rank a table's entries from their rows. `order` lists them as the table does, best value first; the draws are
    seeded by the table's identity."""
    known = {entry: rows[entry].ood for entry in order if entry in rows}
    finite = {entry: isfinite(sample.spread().variance) for entry, sample in known.items()}
    entries = [entry for entry in known if finite[entry]]
    left_out = {entry: "the variance of its score is unknown" for entry in known if not finite[entry]}
    if not entries:
        return Ranking(left_out=left_out)
    joint = estimate_joint_covariance([known[entry] for entry in entries])
    sets = compute_rank_sets(joint, better, LEVEL, f"table/{identity}")
    tied = format_group_letters(find_tie_groups(joint.values, sets.differs, better), len(entries))
    bounds = known[entries[0]].bounds
    pairs = Pairs(tuple(entries), joint.values, sets.reach, sets.differs, joint.covariance, bounds)
    places = {
        entry: {
            "rank": (int(sets.low[k]), int(sets.high[k])),
            "ties": tied[k],
            "best": round(float(sets.best[k]), 4),
            "behind": None if k == 0 else pairs.apart(entry, entries[0]),
        }
        for k, entry in enumerate(entries)
    }
    return Ranking(places, pairs, left_out)


def compare_with_baseline(
    ranking: Ranking, baseline: str, better: Better, rows: Mapping[str, EntryRows]
) -> dict[str, dict[str, Any]]:
    """Every other entry minus the baseline, with p-values adjusted for all of them by Holm (1979), and a verdict:
    better, worse, or none. An unadjusted p-value depends on no third entry."""
    others = [entry for entry in ranking.places if entry != baseline]
    if baseline not in ranking.places or not others:
        return {}
    samples = [(rows[entry].ood, rows[baseline].ood) for entry in others]
    p_values = [run_paired_t(*pair)[0] for pair in samples]
    result = {}
    for entry, pair, raw, adjusted in zip(others, samples, p_values, adjust_by_holm(p_values), strict=True):
        record = estimate_paired_difference(*pair).to_dict()
        record.pop("per_seed", None)
        ahead = (record["value"] > 0) == (better == "higher")
        verdict = "none" if adjusted > 1 - LEVEL else "better" if ahead else "worse"
        result[entry] = record | {"p": _round_p_value(raw), "p_holm": _round_p_value(adjusted), "verdict": verdict}
    return result


def _round_p_value(p: float) -> float:
    """Round a p-value to six significant digits; further digits are rounding error."""
    return float(f"{p:.6g}")


def compute_optimism(ranking: Ranking, entries: Sequence[str], attempts: int) -> float | None:
    """The expected excess of the best of a team's attempts over its true value, if all of them were equally good: from
    the errors of its ranked `entries`; None for a single attempt, or if none is ranked."""
    known = [entry for entry in entries if entry in ranking.places]
    if attempts < 2 or not known or ranking.pairs is None:
        return None
    at = [ranking.pairs.index_by_entry[entry] for entry in known]
    covariance = ranking.pairs.covariance[np.ix_(at, at)]
    errors = np.sqrt(np.diag(covariance)).tolist()
    # Assume that withdrawn attempts had errors of the same size.
    errors += [float(np.median(errors))] * (attempts - len(errors))
    return round(compute_expected_maximum(errors, compute_common_correlation(covariance)), 6)
