"""Which entries do not differ significantly? Groups for a table: those that share a letter.

Not differing significantly is not an equivalence: A may tie with B and B with C while A and C differ. So
groups overlap, and where standard errors differ they need not be runs of neighbours either: A and C, known from many
seeds, may differ, and both tie with a B between, above or below them. A compact letter display (Piepho, Journal of
Computational and Graphical Statistics 2004) shows the relation exactly: two entries share a group if, and only if, they
do not differ. All largest groups can be exponentially many; these are as many as it takes (Gramm et al., Journal of
Computational and Graphical Statistics 2007), found by covering one pair after another.
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
    """Groups of entries, by their positions, best first within each group and among them.

    values (M,); differs (M, M), symmetric: which pairs differ significantly. No two entries of a group differ, none
    could be added to it, every pair that does not differ lies in a group together, and so does each entry."""
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
    """A group around two entries that nothing can be added to: those between them come first, then those outside."""
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
    """Without groups all of whose pairs lie in others; the latest found are tried first."""
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
    """The letters of each entry, as tables print them: a for the first group, then b .. z, aa, ab ..; separated by
    blanks where a letter has two."""
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
