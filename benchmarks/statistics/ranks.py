"""Simultaneous comparison of all pairs of entries: the max-t test, confidence sets of ranks, tie groups.

Max-t test. Among M (M - 1) / 2 differences, the largest is large even if all M entries are equal. The test requires
each |t_ij| = |value_i - value_j| / se_ij to exceed its own critical value, such that

    P(any pair exceeds) = 1 - level        if all entries are equal

which also controls the error for any pattern of true ties (Romano and Wolf, JASA 2005; for ranks Mogstad, Romano,
Shaikh and Wilhelm, REStud 2024). The standard errors have different degrees of freedom, such as from 10,000 rows or 5
seeds, so the critical values share a tail probability instead of a t value: it is estimated from Gaussian draws of the
joint covariance, and each pair has the t quantile for its own degrees of freedom (a Gaussian copula with t margins).

With few degrees of freedom relative to the number of entries (20 clusters, 5 seeds), the estimated covariance has
spurious structure: of 40 equal entries on 6 clusters, some differed significantly in 57 % of trials. With fewer than
KNOWN degrees of freedom per entry, pairs are therefore treated as independent, with the tail probability
1 - level^(1 / pairs), which is valid for every covariance (Sidak, JASA 1967) and increases critical values by about
three per cent.

This is the single-step procedure: a pair differs significantly if and only if its simultaneous interval excludes 0.

Rank sets. An entry's rank set runs from 1 + the number of significantly better entries to M - the number of
significantly worse entries. Unless some pair is falsely declared to differ, which has probability 1 - `level`, every
true rank is in its set, and for tied entries all ranks that they share (Mogstad et al. 2024). The distribution of an
entry's rank over resamples has no such guarantee: if all entries tie, its percentile intervals almost never cover.

Tie groups. Not differing significantly is not an equivalence relation: A may tie with B and B with C while A and C
differ. Groups therefore overlap, and with unequal standard errors they need not be contiguous either: A and C, with
many seeds, may differ while both tie with a B between, above or below them. A compact letter display (Piepho, Journal
of Computational and Graphical Statistics 2004) represents the relation exactly: two entries share a group if and only
if they do not differ. The number of maximal groups can be exponential; the groups here are only as many as needed
(Gramm et al., Journal of Computational and Graphical Statistics 2007), found by covering the pairs one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .joint_covariance import DRAWS, JointCovariance, Matrix
from .variance_estimate import LEVEL, find_t_quantiles

Better = Literal["higher", "lower"]

KNOWN = 2
"""The minimum degrees of freedom per entry for which the estimated covariance is treated as known."""


@dataclass(frozen=True)
class RankSets:
    """low, high (M,): the lowest and highest rank of each entry, from 1; best (M,): its probability of being best,
    which sum to 1; differs (M, M): which pairs differ significantly; reach (M, M): the half-widths of the simultaneous
    intervals of all differences, rows minus columns."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    best: Matrix
    differs: NDArray[np.bool_]
    reach: Matrix

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain JSON for each entry, with four decimals, the precision of the draws."""
        columns = zip(self.low.tolist(), self.high.tolist(), self.best.tolist(), strict=True)
        return [{"low": low, "high": high, "best": round(best, 4)} for low, high, best in columns]


def compute_rank_sets(
    joint_covariance: JointCovariance, better: Better = "higher", level: float = LEVEL, stream: str = "ranks"
) -> RankSets:
    """Compute the rank sets of M entries, which are simultaneously correct with probability `level`.

    stream: the name that seeds the draws; with another version of NumPy, a set may change within their Monte Carlo
    error."""
    critical = compute_critical_values(joint_covariance, level, f"{stream}/max-t")
    differs = np.abs(joint_covariance.t) > critical
    sign = 1 if better == "higher" else -1
    ahead = differs & (sign * joint_covariance.difference > 0)
    return RankSets(
        low=1 + ahead.sum(axis=0),
        high=len(joint_covariance) - ahead.sum(axis=1),
        best=estimate_best_probabilities(joint_covariance, better, f"{stream}/best"),
        differs=differs,
        reach=critical * joint_covariance.se,
    )


def compute_critical_values(joint_covariance: JointCovariance, level: float = LEVEL, stream: str = "max-t") -> Matrix:
    """Compute the value that |t| of each pair must exceed, (M, M), 0 on the diagonal, such that with probability
    `level`, in (0, 1), no two equal entries differ significantly.

    stream: the name that seeds the draws. Another version of NumPy may draw different numbers: critical values then
    change within their Monte Carlo error, some tenths of a per cent. Time: DRAWS x M^2 / 2 steps."""
    pairs = int(np.count_nonzero(np.triu(joint_covariance.variance)))
    if pairs < 2 or np.median(joint_covariance.df[joint_covariance.variance > 0]) < KNOWN * len(joint_covariance):
        tail = -float(np.expm1(np.log(level) / max(pairs, 1)))
    else:
        from scipy.special import ndtr

        inverse = np.zeros_like(joint_covariance.se)  # no difference without noise
        np.divide(1.0, joint_covariance.se, out=inverse, where=joint_covariance.se > 0)
        blocks = joint_covariance.noise(stream)
        largest = np.sort(np.concatenate([_find_largest(noise, inverse) for noise in blocks]))
        tail = 2 * float(ndtr(-largest[int(np.ceil(level * (DRAWS + 1))) - 1]))
    critical = find_t_quantiles(tail, joint_covariance.df)
    np.fill_diagonal(critical, 0.0)
    return critical


def _find_largest(noise: Matrix, inverse: Matrix) -> Matrix:
    """Compute max |noise_i - noise_j| inverse_ij of each draw (M, draws), shape (draws,), in pieces that fit in
    cache."""
    largest = np.zeros(noise.shape[1])
    room = np.empty_like(noise)
    for entry in range(len(noise) - 1):
        rest = np.subtract(noise[entry + 1 :], noise[entry], out=room[entry + 1 :])
        rest *= inverse[entry, entry + 1 :, None]
        np.maximum(largest, rest.max(axis=0), out=largest)
        np.maximum(largest, -rest.min(axis=0), out=largest)
    return largest


def estimate_best_probabilities(
    joint_covariance: JointCovariance, better: Better = "higher", stream: str = "best"
) -> Matrix:
    """Estimate the share of draws, value + Gaussian noise with the joint covariance, in which each entry is first,
    (M,); entries with equal values whose difference has no noise divide it equally.

    It describes how clearly the first place is decided on these data; it is not a posterior probability, and is
    overconfident with few seeds."""
    same = (joint_covariance.variance == 0) & (joint_covariance.difference == 0)
    first = same.argmax(axis=1)  # the first entry with the same values
    distinct_entries, where, copies = np.unique(first, return_inverse=True, return_counts=True)
    distinct = joint_covariance.select(distinct_entries)
    values = (1 if better == "higher" else -1) * distinct.values[:, None]
    wins = np.zeros(len(distinct), np.int64)
    for noise in distinct.noise(stream):
        wins += np.bincount(np.ascontiguousarray((values + noise).T).argmax(axis=1), minlength=len(distinct))
    shares: Matrix = (wins / DRAWS / copies)[where]
    return shares


def find_tie_groups(
    values: NDArray[np.float64], differs: NDArray[np.bool_], better: Better = "higher"
) -> list[list[int]]:
    """Find groups of entries, as positions, best first within and among groups.

    values (M,); differs (M, M), symmetric: which pairs differ significantly. No two entries of a group differ, no entry
    can be added to a group, and every entry and every pair that does not differ is contained in a group."""
    order = np.argsort(-values if better == "higher" else values, kind="stable")
    tied = ~differs[np.ix_(order, order)]
    np.fill_diagonal(tied, True)
    open_pairs = np.triu(tied)
    groups: list[list[int]] = []
    for first in range(len(order)):
        while (left := np.flatnonzero(open_pairs[first])).size:
            group = _grow_group(tied, first, int(left[-1]))
            open_pairs[np.ix_(group, group)] = False
            groups.append(group)
    return [[int(order[index]) for index in group] for group in sorted(_drop_redundant_groups(groups))]


def _grow_group(tied: NDArray[np.bool_], first: int, last: int) -> list[int]:
    """Extend two entries to a maximal group: entries between them are added first, then those outside."""
    group, allowed = {first, last}, tied[first] & tied[last]
    allowed[[first, last]] = False
    places = np.arange(len(tied))
    for part in (places[first : last + 1], places[last + 1 :], places[:first][::-1]):
        while (left := part[allowed[part]]).size:
            entry = int(left[0])
            group.add(entry)
            allowed &= tied[entry]
            allowed[entry] = False
            part = left[1:]
    return sorted(group)


def _drop_redundant_groups(groups: list[list[int]]) -> list[list[int]]:
    """Remove groups whose pairs are all contained in other groups, starting with the latest."""
    size = 1 + max(max(group) for group in groups) if groups else 0
    times = np.zeros((size, size), np.int64)
    for group in groups:
        times[np.ix_(group, group)] += 1
    needed = []
    for group in reversed(groups):
        square = np.ix_(group, group)
        if (times[square] > 1).all():
            times[square] -= 1
        else:
            needed.append(group)
    return needed


def format_group_letters(groups: Sequence[Sequence[int]], entries: int) -> list[str]:
    """Format the letters of each entry: a for the first group, then b .. z, aa, ab ..; separated by blanks if labels
    have two letters."""
    between = "" if len(groups) <= len(ascii_lowercase) else " "
    by_entry: list[list[str]] = [[] for _ in range(entries)]
    for number, group in enumerate(groups):
        name = format_letter(number)
        for entry in group:
            by_entry[entry].append(name)
    return [between.join(names) for names in by_entry]


def format_letter(number: int) -> str:
    """Format a number as letters: a .. z, aa, ab .."""
    rest, last = divmod(number, len(ascii_lowercase))
    return (format_letter(rest - 1) if rest else "") + ascii_lowercase[last]
