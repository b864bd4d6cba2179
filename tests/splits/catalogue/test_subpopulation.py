"""Subpopulation shift: cells of label and attribute in the stated numbers, no row on both sides."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.splits.rules.subpopulation import cells
from hypothesis import given
from hypothesis import strategies as st


def table(count: int = 400) -> pa.Table:
    number = np.arange(count)
    colours = np.array(["red", "green"])[number // 2 % 2].tolist()
    return pa.table({"row_id": number.astype(np.uint64), "label": number % 2, "colour": colours, "x": number // 8})


def drawn(rows: pa.Table, train: dict[str, int], ood_test: dict[str, int], **more):
    return cells(rows, label="label", attribute="colour", train=train, ood_test=ood_test, seed="s", **more)


CELLS = ("0/green", "0/red", "1/green", "1/red")
counts = st.fixed_dictionaries(dict.fromkeys(CELLS, st.integers(0, 50)))


@given(counts, counts)
def test_each_part_has_the_stated_number_of_rows_of_each_cell(train, ood_test):
    result = drawn(table(), train, ood_test)
    for part, expected in (("train", train), ("ood_test", ood_test)):
        got = Counter(result.group[result.part == part].tolist())
        assert got == {cell: count for cell, count in expected.items() if count}
    assert set(result.group.tolist()) == set(CELLS)


@given(counts, counts)
def test_the_test_of_a_cell_is_the_same_whatever_trains(train, other):
    test = dict.fromkeys(CELLS, 20)
    first, second = drawn(table(), train, test), drawn(table(), other, test)
    assert ((first.part == "ood_test") == (second.part == "ood_test")).all()


def test_of_rows_that_are_alike_only_the_first_is_used():
    rows = table()
    result = drawn(rows, dict.fromkeys(CELLS, 30), dict.fromkeys(CELLS, 20), distinct=["label", "colour", "x"])
    used = rows.filter(result.part != "")
    alike = list(zip(used["label"].to_pylist(), used["colour"].to_pylist(), used["x"].to_pylist(), strict=True))
    assert len(alike) == len(set(alike)) == 200
    first = {}
    for position, kind in enumerate(zip(*(rows[name].to_pylist() for name in ("label", "colour", "x")), strict=True)):
        first.setdefault(kind, position)
    assert set(used["row_id"].to_pylist()) <= set(first.values())


@pytest.mark.parametrize(
    ("train", "more", "error", "complaint"),
    [
        ({"0/red": 101}, {}, BadDefinition, "101 rows of the cell 0/red are needed, but there are 100"),
        ({"0/blue": 1}, {}, UnknownName, "no cell named '0/blue'"),
        ({"0/red": 1}, {"distinct": ["y"]}, UnknownName, "no field named 'y'"),
    ],
)
def test_cells_that_there_are_not_enough_of_are_refused(train, more, error, complaint):
    with pytest.raises(error, match=complaint):
        drawn(table(), train, {}, **more)
