"""Rules by length, by phrases and by lists: buckets and held-out pairs, on tables small enough to see through."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.splits.rules import phrases
from farshift.splits.rules.held_out_pairs import corner, words
from farshift.splits.rules.length import size_shift
from farshift.splits.rules.severity_buckets import threshold
from hypothesis import given
from hypothesis import strategies as st


def table(**columns) -> pa.Table:
    rows = len(next(iter(columns.values())))
    return pa.table({"row_id": pa.array(range(rows), pa.uint64()), **columns})


def parts(assignment) -> list[str]:
    return assignment.part.tolist()


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=60).map(lambda some: [1, 2, 3, *some]),
    bounds=st.lists(st.integers(3, 29), min_size=1, max_size=4, unique=True).map(lambda some: [*sorted(some), 30]),
)
def test_what_is_short_trains_and_what_is_long_is_tested_in_its_range(lengths, bounds):
    built = threshold(table(length=lengths), field="length", bounds=bounds, id_test=2, seed="s")
    near = [length <= bounds[0] for length in lengths]
    assert [part in ("train", "id_test") for part in parts(built)] == near
    assert parts(built).count("id_test") == 2
    assert built.severity.tolist() == lengths
    for length, group in zip(lengths, built.group.tolist(), strict=True):
        low, high = map(int, group.split("-"))
        assert low <= length <= high and high in bounds


def test_ranges_begin_after_the_bound_before():
    built = threshold(table(length=[2, 3, 4, 5, 8, 9]), field="length", bounds=[3, 5, 9], id_test=1, seed="s")
    assert built.group.tolist() == ["2-3", "2-3", "4-5", "4-5", "6-9", "6-9"]


def test_formats_that_share_items_share_their_parts():
    items = np.arange(100) * 7 % 101
    item = table(length=np.repeat([1, 9], 50), item=items)
    other = item.take(np.random.default_rng(0).permutation(100))
    sides = [
        dict(
            zip(
                side["item"].to_pylist(),
                parts(threshold(side, field="length", bounds=[5, 9], id_test=20, seed="s", paired_by="item")),
                strict=True,
            )
        )
        for side in (item, other)
    ]
    assert sides[0] == sides[1]


def test_rows_beyond_another_measure_are_dropped():
    columns = table(carry=[0, 1, 2, 0, 2, 9], length=[1, 2, 3, 9, 9, 9])
    built = threshold(columns, field="carry", bounds=[1, 2], id_test=1, seed="s", among={"length": 3})
    assert parts(built)[3:] == ["", "", ""]
    assert sorted(parts(built)[:3]) == ["id_test", "ood_test", "train"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"bounds": [5]}, "give two or more, ascending"),
        ({"bounds": [9, 5]}, "give two or more, ascending"),
        ({"bounds": [5, 5]}, "give two or more, ascending"),
        ({"bounds": [2, 7]}, "length reaches 9, beyond the last of the bounds"),
        ({"id_test": -1}, "id_test = -1"),
        ({"among": {"item": 0}}, "only 0 rows"),
        ({"id_test": 3}, "id_test = 3, but only 3 rows have length <= 5"),
        ({"field": "lenght"}, "did you mean length"),  # codespell:ignore lenght
        ({"paired_by": "itme"}, "did you mean item"),  # codespell:ignore itme
        ({"among": {"itme": 1}}, "did you mean item"),  # codespell:ignore itme
    ],
)
def test_buckets_that_cannot_be_filled_are_refused(change, complaint):
    columns = table(length=[1, 2, 3, 9], item=[1, 2, 3, 4])
    requested = {"field": "length", "bounds": [5, 9], "id_test": 1, "seed": "s"} | change
    with pytest.raises((BadDefinition, UnknownName), match=complaint):
        threshold(columns, **requested)


NESTED = table(pairs=["a>b", "a>b b>a", "", "b>a", "ba>a"], depth=[1, 1, 1, 5, 1])


NONE_APART = {"id_test": 0, "alike": "depth", "seed": "s"}


def test_rows_with_a_held_out_word_are_tested_and_counted():
    built = words(NESTED, field="pairs", held_out=["b>a", "a>b"], **NONE_APART)
    assert parts(built) == ["ood_test", "ood_test", "train", "ood_test", "train"]
    assert built.severity.tolist() == [1, 2, 0, 1, 0]
    assert built.group.tolist() == ["a>b", "b>a a>b", "none", "b>a", "none"]


def test_a_held_out_word_that_no_row_has_is_refused():
    with pytest.raises(BadDefinition, match="held_out names no word"):
        words(NESTED, field="pairs", held_out=[], **NONE_APART)
    with pytest.raises(BadDefinition, match=r"no row has c>a in 'pairs'"):
        words(NESTED, field="pairs", held_out=["a>b", "c>a"], **NONE_APART)
    built = words(NESTED, field="pairs", held_out=["b>a"], among={"depth": 1}, **NONE_APART)
    assert parts(built) == ["train", "ood_test", "train", "", "train"]


def test_the_id_test_is_as_deep_as_the_test_of_held_out_words():
    pairs = ["a>b"] * 2 + ["b>a"] * 60 + ["a>b"] * 6
    nested = table(pairs=pairs, depth=[2] * 2 + [1, 2, 3] * 20 + [3] * 6)
    built = words(nested, field="pairs", held_out=["a>b"], id_test=12, alike="depth", seed="s")
    drawn = [depth for depth, part in zip(nested["depth"].to_pylist(), built.part, strict=True) if part == "id_test"]
    assert sorted(drawn) == [2] * 3 + [3] * 9, "two of eight tested rows have depth 2, six depth 3"
    assert parts(built).count("train") == 48 and parts(built).count("ood_test") == 8
    with pytest.raises(BadDefinition, match="needs 23 training rows with depth = 3; there are 20"):
        words(nested, field="pairs", held_out=["a>b"], id_test=31, alike="depth", seed="s")


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=40))
def test_the_corner_is_beyond_every_bound(rows):
    built = corner(table(depth=[d for d, _ in rows], breadth=[b for _, b in rows]), above={"depth": 2, "breadth": 3})
    assert [part == "ood_test" for part in parts(built)] == [d > 2 and b > 3 for d, b in rows]
    assert built.group.tolist() == [f"depth {d}, breadth {b}" for d, b in rows]


def test_a_corner_of_one_side_is_refused():
    with pytest.raises(BadDefinition, match="two fields or more"):
        corner(NESTED, above={"depth": 2})


TABLE = pa.table({"text": ["up", "go up", "go up and go up", "up a hill", "goes up", "run up"]})


def test_a_phrase_is_found_as_whole_words_and_counted():
    outcome = phrases.held_out(TABLE, field="text", phrases=["go up"])
    assert outcome.part.tolist() == ["train", "ood_test", "ood_test", "train", "train", "train"]
    assert outcome.severity.tolist() == [0, 1, 2, 0, 0, 0]


def test_dropped_rows_are_in_no_part_and_untrained_ones_only_out_of_training():
    outcome = phrases.held_out(TABLE, field="text", phrases=["go up"], dropped=["and"], untrained=["go", "run up"])
    assert outcome.part.tolist() == ["train", "ood_test", "", "train", "train", ""]


def test_a_phrase_alone_trains_with_its_weight():
    outcome = phrases.alone_in_training(TABLE, field="text", phrase="go up", weight=7)
    assert outcome.part.tolist() == ["train", "train", "ood_test", "train", "train", "train"]
    assert outcome.weight.tolist() == [1, 7, 1, 1, 1, 1]
    assert outcome.severity.tolist() == [0, 0, 2, 0, 0, 0]


@pytest.mark.parametrize("where", ["phrases", "dropped", "untrained"])
def test_a_phrase_that_stands_nowhere_is_refused(where):
    parameters = {"phrases": ["go up"]} | {where: ["go down"]}
    with pytest.raises(BadDefinition, match="no row of 'text' contains the phrase 'go down'"):
        phrases.held_out(TABLE, field="text", **parameters)


def test_a_phrase_that_never_stands_alone_is_refused():
    with pytest.raises(BadDefinition, match="0 rows of 'text' are the bare phrase 'up a'"):
        phrases.alone_in_training(TABLE, field="text", phrase="up a")
    with pytest.raises(UnknownName, match="no field named 'txt': did you mean text"):
        phrases.alone_in_training(TABLE, field="txt", phrase="up")


@given(sizes=st.lists(st.integers(1, 40), min_size=10, max_size=60))
def test_the_smallest_half_trains_and_the_largest_tenth_is_tested(sizes):
    ranked = sorted(sizes)
    small, large = ranked[len(sizes) // 2], ranked[int(0.9 * len(sizes))]
    options = {"field": "size", "train_share": 0.5, "test_share": 0.1, "id_test": 2, "seed": "s"}
    if small == large:
        with pytest.raises(BadDefinition, match="give smaller shares"):
            size_shift(table(size=sizes), **options)
        return
    built = size_shift(table(size=sizes), **options)
    assert [part in ("train", "id_test") for part in parts(built)] == [size <= small for size in sizes]
    assert [part == "ood_test" for part in parts(built)] == [size >= large for size in sizes]
    assert parts(built).count("id_test") == 2
    assert built.severity.tolist() == sizes
