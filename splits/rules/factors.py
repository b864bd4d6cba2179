"""Compositional: every value of every factor occurs in training, some combinations do not."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import format_names, read_names, read_numeric_column

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int64]
Words = NDArray[np.str_]


def combination(table: pa.Table, *, factors: list[str], values: list[list[str]]) -> Assignment:
    """Rows whose factors have one of the combinations `values`, each a value for every factor, are `ood_test`.

    Parameters:
        factors: the fields that are combined, text or whole numbers.
        values: the held-out combinations, each a value for every factor.
    """
    columns = [read_names(table, factor) for factor in factors]
    held_out = np.zeros(table.num_rows, bool)
    for held_out_values in map(format_names, values):
        if len(held_out_values) != len(factors):
            raise BadDefinition(
                f"{held_out_values} has {len(held_out_values)} values for the {len(factors)} factors "
                f"{', '.join(factors)}"
            )
        matches = np.all([column == value for column, value in zip(columns, held_out_values, strict=True)], axis=0)
        if not matches.any():
            raise BadDefinition(f"no row has {', '.join(factors)} = {', '.join(held_out_values)}")
        held_out |= matches
    return _hold_out(columns, factors, held_out)


def diagonal(table: pa.Table, *, factors: list[str], width: int = 1) -> Assignment:
    """Rank the values of two factors as text; `width` diagonals of the grid, wrapped around, are `ood_test`: each value
    of one factor is held out with `width` values of the other.

    Parameters:
        factors: the two fields that are combined.
        width: the number of held-out diagonals.
    """
    first, second, columns = _rank_factors(table, factors)
    size = max(int(first.max()), int(second.max())) + 1
    if not 0 < width < size:
        raise BadDefinition(f"width = {width}: between 1 and {size - 1} for {size} values")
    return _hold_out(columns, factors, (second - first) % size < width)


def checkerboard(table: pa.Table, *, factors: list[str]) -> Assignment:
    """Rank the values of two factors as text; the cells of the grid with an odd sum of ranks are `ood_test`.

    Parameters:
        factors: the two fields that are combined.
    """
    first, second, columns = _rank_factors(table, factors)
    return _hold_out(columns, factors, (first + second) % 2 == 1)


def drawn(
    table: pa.Table, *, factors: list[str], share: float, seed: str, least: dict[str, int] | None = None
) -> Assignment:
    """A share of the combinations of `factors`, drawn by `seed`, is `ood_test`. A combination is skipped if holding it
    out would leave one of its sub-combinations (all but one of its factors) without a training row, so that only the
    full combination is new. `least` names integer fields: a combination always trains, and does not count towards the
    share, if one of its rows has a smaller value, such as rows in which a factor has no effect.

    Parameters:
        factors: the fields that are combined.
        share: the share of held-out combinations, from 0 to 1.
        least: for each integer field the smallest value that all rows of a held-out combination must have.
    """
    columns = [read_names(table, factor) for factor in factors]
    coded = np.stack([np.unique(column, return_inverse=True)[1] for column in columns], axis=1)
    tuples, which = np.unique(coded, axis=0, return_inverse=True)
    which = which.ravel()  # only NumPy 2.0 returns a second axis
    lacking = [which[read_numeric_column(table, field) < value] for field, value in (least or {}).items()]
    open_to = np.setdiff1d(which, np.concatenate([*lacking, which[:0]]))
    count = round(share * len(open_to))
    order = open_to[draw_permutation(f"{seed}/combination", open_to.astype(np.uint64))]
    chosen = _choose_without_loss(tuples, order, count)
    if len(chosen) < count:
        raise BadDefinition(
            f"share = {share}: {count} of {len(open_to)} combinations of {', '.join(factors)} cannot be held out with "
            f"every part of them seen in training; {len(chosen)} can"
        )
    return _hold_out(columns, factors, np.isin(which, chosen))


def sequences(table: pa.Table, *, field: str, size: int, share: float, id_test: int, seed: str) -> Assignment:
    """Hold out sequences of words, such as the skills that a row applies, listed in `field`. Rows of fewer than `size`
    words train; a share of the distinct sequences of `size` words, drawn by `seed`, is `ood_test`, and the others
    train; longer rows are dropped. Every shorter n-gram of a held-out sequence must occur in training. The group is the
    sequence.

    `id_test` rows with a trained sequence of `size` words are the in-distribution test: they have the same length as
    those of `ood_test`, so that the two differ only in whether the sequence was seen. One row of each sequence always
    trains.

    Parameters:
        field: the text field with the sequence of words.
        size: the length of the sequences of which some are held out.
        share: the share of those sequences that is held out, from 0 to 1.
        id_test: the number of rows in `id_test`.
    """
    text = read_names(table, field)
    counts = np.char.count(text, " ") + 1
    candidates = np.unique(text[counts == size])
    order = draw_permutation(f"{seed}/sequence", np.arange(len(candidates), dtype=np.uint64))
    held_out = np.isin(text, candidates[order[: round(share * len(candidates))]])
    if not held_out.any():
        raise BadDefinition(
            f"share = {share} of {len(candidates)} sequences of {size} words in {field!r}: none would be held out"
        )
    part = np.where(held_out, "ood_test", np.where(counts <= size, "train", ""))
    trained = np.flatnonzero((counts == size) & ~held_out)
    trained = trained[draw_permutation(f"{seed}/id_test", table["row_id"].to_numpy()[trained])]
    spare = np.delete(trained, np.unique(text[trained], return_index=True)[1])
    if not 0 <= id_test <= len(spare):
        raise BadDefinition(f"id_test = {id_test}, but training can spare {len(spare)} rows of {size} words")
    part[spare[:id_test]] = "id_test"
    runs = {run for sequence in set(text[part == "train"].tolist()) for run in _list_runs(sequence.split(), size - 1)}
    for sequence in sorted(set(text[held_out].tolist())):
        if missing := sorted(_list_runs(sequence.split(), size - 1) - runs):
            raise BadDefinition(f"{sequence!r} would be held out, but no training row has {' '.join(missing[0])!r}")
    return Assignment(part=part, severity=counts, group=text)


def _rank_factors(table: pa.Table, factors: list[str]) -> tuple[Codes, Codes, list[Words]]:
    """Return the ranks of two factors' values, and the values."""
    if len(factors) != 2:
        raise BadDefinition(f"the rule needs two factors, not {', '.join(factors) or 'none'}")
    columns = [read_names(table, factor) for factor in factors]
    first, second = (np.unique(column, return_inverse=True)[1] for column in columns)
    return first, second, columns


def _hold_out(columns: list[Words], factors: list[str], held_out: NDArray[np.bool_]) -> Assignment:
    """Assign training and test, with the combination as group; refuse a value that would not occur in training."""
    for column, factor in zip(columns, factors, strict=True):
        unseen = sorted(set(column.tolist()) - set(column[~held_out].tolist()))
        if unseen:
            raise BadDefinition(f"no training row would have {factor} = {', '.join(unseen)}")
    group = columns[0]
    for column in columns[1:]:
        group = np.char.add(np.char.add(group, " "), column)
    return Assignment(part=np.where(held_out, "ood_test", "train"), group=group)


def _choose_without_loss(tuples: Codes, order: Codes, count: int) -> list[int]:
    """Choose the first `count` tuples, in `order`, that leave each sub-tuple in some tuple not chosen."""
    subsets = list(combinations(range(tuples.shape[1]), tuples.shape[1] - 1))
    parts = [[(subset, *row[list(subset)].tolist()) for subset in subsets] for row in tuples]
    left: dict[tuple[object, ...], int] = {}
    for some in parts:
        for subtuple in some:
            left[subtuple] = left.get(subtuple, 0) + 1
    chosen: list[int] = []
    for index in order.tolist():
        if len(chosen) == count:
            break
        if all(left[subtuple] > 1 for subtuple in parts[index]):
            chosen.append(index)
            for subtuple in parts[index]:
                left[subtuple] -= 1
    return chosen


def _list_runs(words: list[str], longest: int) -> set[tuple[str, ...]]:
    """Return all n-grams of one to `longest` words."""
    return {
        tuple(words[start : start + length])
        for length in range(1, longest + 1)
        for start in range(len(words) - length + 1)
    }
