"""Tie groups: entries that do not differ significantly, as a compact letter display.

Not differing significantly is not an equivalence relation: A may tie with B and B with C while A and C differ. Groups
therefore overlap, and with unequal standard errors they need not be contiguous either: A and C, with many seeds, may
differ while both tie with a B between, above or below them. A compact letter display (Piepho, Journal of Computational
and Graphical Statistics 2004) represents the relation exactly: two entries share a group if and only if they do not
differ. The number of maximal groups can be exponential; the groups here are only as many as needed (Gramm et al.,
Journal of Computational and Graphical Statistics 2007), found by covering the pairs one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from .ranks import Better


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
        name = _format_letter(number)
        for entry in group:
            by_entry[entry].append(name)
    return [between.join(names) for names in by_entry]


def _format_letter(number: int) -> str:
    rest, last = divmod(number, len(ascii_lowercase))
    return (_format_letter(rest - 1) if rest else "") + ascii_lowercase[last]
