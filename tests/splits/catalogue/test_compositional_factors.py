"""Held-out combinations of factors: single values stay in training, whole combinations do not."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.splits.rules import factors
from hypothesis import given
from hypothesis import strategies as st


def grid(*sizes: int, copies: int = 1) -> pa.Table:
    """All combinations of factors a, b, c .. with values a0, a1 .."""
    rows = [combination for combination in product(*map(range, sizes)) for _ in range(copies)]
    columns = {name: [f"{name}{row[i]}" for row in rows] for i, name in enumerate("abcd"[: len(sizes)])}
    return pa.table(columns | {"row_id": np.arange(len(rows), dtype=np.uint64)})


def tuples(table: pa.Table, made, part: str, names: str) -> set[tuple[str, ...]]:
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return {row for row, its in zip(rows, made.part, strict=True) if its == part}


def test_one_combination_is_held_out_and_nothing_else():
    table = grid(3, 3, 2)
    built = factors.combination(table, factors=["a", "b"], values=[["a0", "b1"], ["a2", "b2"]])
    assert tuples(table, built, "ood_test", "ab") == {("a0", "b1"), ("a2", "b2")}
    assert len(tuples(table, built, "train", "ab")) == 7
    assert set(built.group[built.part == "ood_test"]) == {"a0 b1", "a2 b2"}


@given(size=st.integers(3, 7), width=st.integers(1, 6))
def test_a_diagonal_holds_out_width_partners_of_every_value(size, width):
    table = grid(size, size)
    if width >= size:
        with pytest.raises(BadDefinition, match="width"):
            factors.diagonal(table, factors=["a", "b"], width=width)
        return
    built = factors.diagonal(table, factors=["a", "b"], width=width)
    locked = tuples(table, built, "ood_test", "ab")
    assert locked == {(f"a{i}", f"b{(i + step) % size}") for i in range(size) for step in range(width)}


def test_a_checkerboard_holds_out_the_dark_squares():
    table = grid(4, 3)
    built = factors.checkerboard(table, factors=["a", "b"])
    assert tuples(table, built, "ood_test", "ab") == {
        (f"a{i}", f"b{j}") for i in range(4) for j in range(3) if (i + j) % 2
    }


@given(sizes=st.lists(st.integers(3, 5), min_size=2, max_size=3), seed=st.text("ab", min_size=1, max_size=4))
def test_drawn_combinations_are_new_and_every_part_of_them_is_seen(sizes, seed):
    table, names = grid(*sizes), "abc"[: len(sizes)]
    built = factors.drawn(table, factors=list(names), share=0.2, seed=seed)
    locked, trained = tuples(table, built, "ood_test", names), tuples(table, built, "train", names)
    assert len(locked) == round(0.2 * np.prod(sizes))
    assert not locked & trained
    for some in combinations(range(len(names)), len(names) - 1):
        assert {tuple(row[i] for i in some) for row in locked} <= {tuple(row[i] for i in some) for row in trained}


def test_drawn_combinations_do_not_depend_on_the_order_of_rows():
    table = grid(4, 4, 4)
    shuffled = table.take(np.random.default_rng(0).permutation(64))
    item, other = (
        tuples(some, factors.drawn(some, factors=["a", "b", "c"], share=0.2, seed="s"), "ood_test", "abc")
        for some in (table, shuffled)
    )
    assert item == other


def test_combinations_of_which_some_row_has_less_always_train():
    table = grid(4, 4, 4)
    effects = np.array([(a != "a0") + (c != "c1") for a, c in zip(*(table[x].to_pylist() for x in "ac"), strict=True)])
    table = table.append_column("effects", pa.array(effects))
    built = factors.drawn(table, factors=["a", "b", "c"], share=0.5, seed="s", least={"effects": 2})
    locked = tuples(table, built, "ood_test", "abc")
    assert len(locked) == 18, "half of 3 x 4 x 3"
    assert not {row for row in locked if row[0] == "a0" or row[2] == "c1"}


def skills(names: str = "pqrs", longest: int = 3) -> pa.Table:
    rows = [" ".join(row) for size in range(1, longest + 1) for row in product(names, repeat=size)]
    return pa.table({"skills": rows, "row_id": np.arange(len(rows), dtype=np.uint64)})


@pytest.mark.parametrize("size", [2, 3])
def test_sequences_hold_out_a_share_of_those_of_one_size(size):
    table = skills()
    built = factors.sequences(table, field="skills", size=size, share=0.25, id_test=0, seed="s")
    words = [text.split() for text in table["skills"].to_pylist()]
    for row, part in zip(words, built.part, strict=True):
        assert part in ("train", "ood_test") if len(row) == size else part == ("train" if len(row) < size else "")
    assert (built.part == "ood_test").sum() == round(0.25 * 4**size)
    trained = [" ".join(row) for row, part in zip(words, built.part, strict=True) if part == "train"]
    locked = [row for row, part in zip(words, built.part, strict=True) if part == "ood_test"]
    assert not {" ".join(row) for row in locked} & set(trained)
    for row in locked:
        assert any(" ".join(row[: size - 1]) in text for text in trained)
    assert set(built.severity[built.part == "ood_test"]) == {size}


def test_the_id_test_of_sequences_has_trained_ones_of_the_tested_size():
    table = pa.concat_tables([skills(longest=2)] * 3).drop_columns("row_id")
    table = table.append_column("row_id", pa.array(np.arange(table.num_rows, dtype=np.uint64)))
    built = factors.sequences(table, field="skills", size=2, share=0.25, id_test=24, seed="s")
    text = np.array(table["skills"].to_pylist())
    assert set(built.severity[built.part == "id_test"]) == {2}
    assert (built.part == "id_test").sum() == 24, "all but one of the three rows of each of twelve sequences"
    assert set(text[built.part == "id_test"]) <= set(text[built.part == "train"])
    with pytest.raises(BadDefinition, match="training can spare 24 rows of 2 words"):
        factors.sequences(table, field="skills", size=2, share=0.25, id_test=25, seed="s")


LACKING = pa.table({"skills": ["p", "q", "p q", "q p", "p p", "q z"], "row_id": np.arange(6, dtype=np.uint64)})
PAIR, THREE = ["a", "b"], ["a", "b", "c"]
SEQUENCES = {"field": "skills", "size": 2, "id_test": 0, "seed": "s"}


@pytest.mark.parametrize(
    ("rule", "table", "options", "told"),
    [
        (factors.combination, grid(3, 3), {"factors": PAIR, "values": [["a0"]]}, "1 values for the 2 factors"),
        (factors.combination, grid(3, 3), {"factors": PAIR, "values": [["a0", "b9"]]}, "no row has"),
        (factors.combination, grid(3, 3), {"factors": PAIR, "values": [["a0", f"b{i}"] for i in range(3)]}, "a = a0"),
        (factors.diagonal, grid(2, 2, 2), {"factors": THREE}, "two factors"),
        (factors.checkerboard, grid(2, 2, 2), {"factors": THREE}, "two factors"),
        (factors.checkerboard, grid(2, 2), {"factors": ["a", "colour"]}, "colour"),
        (factors.drawn, grid(3, 3), {"factors": PAIR, "share": 0.9, "seed": "s"}, "share = 0.9"),
        (factors.sequences, LACKING, SEQUENCES | {"share": 1.0}, "no training row has 'z'"),
        (factors.sequences, skills(), SEQUENCES | {"share": 0.01}, "none would be held out"),
    ],
)
def test_what_cannot_be_held_out_is_refused(rule, table, options, told):
    with pytest.raises((BadDefinition, UnknownName), match=told):
        rule(table, **options)
