"""Compositional rules: held-out combinations of factors, and inferences from facts."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.loaders.generators import coverage, two_hop
from farshift.splits.rules import factors, knowledge
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
    numbered = table.set_column(1, "b", pa.array([int(name[1:]) for name in table["b"].to_pylist()]))
    by_number = factors.combination(numbered, factors=["a", "b"], values=[["a0", 1], ["a2", 2]])
    assert (by_number.part == built.part).all()


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


GRAPH = {"seed": "t", "entities": 60, "relations": 10, "out_degree": 5, "ood_share": 0.2}


def with_ids(table: pa.Table) -> pa.Table:
    return table.append_column("row_id", [np.arange(table.num_rows, dtype=np.uint64)])


def test_inferred_trains_on_every_fact_and_phi_inferences_a_fact():
    table = with_ids(two_hop.rows(**GRAPH))
    built = knowledge.inferred(table, hops="hops", facts="facts", phi=2.5, id_test=50, ood_test=30, seed="s")
    hops, sort = table["hops"].to_numpy(), np.array(table["facts"].to_pylist())
    assert (built.part[hops == 1] == "train").all()
    assert ((built.part == "train") & (hops == 2)).sum() == 2.5 * 240
    assert set(sort[(built.part == "train") & (hops == 2)]) == {"id"}
    assert set(sort[built.part == "id_test"]) == {"id"} and (built.part == "id_test").sum() == 50
    assert set(sort[built.part == "ood_test"]) == {"ood"} and (built.part == "ood_test").sum() == 30
    assert set(built.group[built.part == "ood_test"]).isdisjoint(built.group[built.part == "train"])


def test_a_larger_phi_keeps_the_tests_and_adds_to_training():
    table = with_ids(two_hop.rows(**GRAPH))
    small, large = (
        knowledge.inferred(table, hops="hops", facts="facts", phi=phi, id_test=50, ood_test=30, seed="s").part
        for phi in (1.0, 3.0)
    )
    assert ((small == "id_test") == (large == "id_test")).all()
    assert set(np.flatnonzero(small == "train")) < set(np.flatnonzero(large == "train"))


def test_a_phi_that_asks_for_too_much_is_refused():
    table = with_ids(two_hop.rows(**GRAPH))
    with pytest.raises(BadDefinition, match="lower phi"):
        knowledge.inferred(table, hops="hops", facts="facts", phi=9.0, id_test=50, ood_test=30, seed="s")


COVER = {"first": ["x1", "x2"], "second": ["bridge", "x3"], "known": 0.7, "test_rows": 40, "seed": "s"}


def test_coverage_types_say_which_hops_training_has():
    table = with_ids(coverage.rows(seed="t", tokens=12, structure="two_hop"))
    built = knowledge.coverage(table, train_rows=500, **COVER)
    rows = table.to_pylist()
    trained = [row for row, part in zip(rows, built.part, strict=True) if part == "train"]
    first = {(row["x1"], row["x2"]) for row in trained}
    second = {(row["bridge"], row["x3"]) for row in trained}
    names = {
        (1, 1): "both hops seen",
        (0, 1): "first hop unseen",
        (1, 0): "second hop unseen",
        (0, 0): "neither hop seen",
    }
    for row, part, severity, group in zip(rows, built.part, built.severity, built.group, strict=True):
        if part in ("id_test", "ood_test"):
            seen = ((row["x1"], row["x2"]) in first, (row["bridge"], row["x3"]) in second)
            assert group == names[seen]
            assert severity == 2 - sum(seen)
            assert (part == "id_test") == all(seen)
    used = Counter((part, group) for part, group in zip(built.part, built.group, strict=True) if part)
    unseen = [name for name in names.values() if name != "both hops seen"]
    assert used == {
        ("train", "both hops seen"): 500,
        ("id_test", "both hops seen"): 40,
        **{("ood_test", name): 40 for name in unseen},
    }


def test_coverage_refuses_more_rows_than_are_covered():
    table = with_ids(coverage.rows(seed="t", tokens=12, structure="two_hop"))
    with pytest.raises(BadDefinition, match="train_rows = 1700"):
        knowledge.coverage(table, train_rows=1700, **COVER)
    with pytest.raises(BadDefinition, match="test_rows = 400"):
        knowledge.coverage(table, train_rows=500, **COVER | {"test_rows": 400})


def build_with_wrong_steps(**parameters):
    table = with_ids(two_hop.rows(**GRAPH))
    rule = {"hops": "hops", "facts": "facts", "phi": 3.0, "id_test": 50, "ood_test": 30, "seed": "s"}
    return table.to_pylist(), knowledge.inferred(table, **rule, label="steps", **parameters)


def test_the_steps_of_a_composition_are_the_answers_of_its_two_facts():
    table = two_hop.rows(**GRAPH)
    facts = {row["question"]: row["answer"] for row in table.to_pylist() if row["hops"] == 1}
    for row in table.to_pylist():
        if row["hops"] == 2:
            head, first, second = row["question"].split()
            bridge = facts[f"{head} {first}"]
            assert row["steps"] == f"{bridge} {facts[f'{bridge} {second}']}"
        else:
            assert row["steps"] == row["answer"]


@pytest.mark.parametrize("words", [[0], [1], [0, 1]])
def test_exactly_the_stated_share_of_trained_compositions_has_the_stated_steps_wrong(words):
    rows, built = build_with_wrong_steps(wrong=0.4, wrong_words=words)
    changed = np.flatnonzero(~np.ma.getmaskarray(built.label))
    trained = {i for i, row in enumerate(rows) if row["hops"] == 2 and built.part[i] == "train"}
    assert set(changed) < trained and len(changed) == round(0.4 * len(trained))
    for i in changed:
        pairs = list(zip(rows[i]["steps"].split(), built.label[i].split(), strict=True))
        assert [place for place, (true, written) in enumerate(pairs) if true != written] == words


def test_wrong_steps_leave_the_parts_alone_and_stay_wrong_at_a_higher_rate():
    (_, few), (_, many) = (build_with_wrong_steps(wrong=rate, wrong_words=[0]) for rate in (0.2, 0.4))
    assert (few.part == many.part).all()
    assert set(np.flatnonzero(~few.label.mask)) < set(np.flatnonzero(~many.label.mask))
    assert all(few.label[i] == many.label[i] for i in np.flatnonzero(~few.label.mask))


@pytest.mark.parametrize("wrong", [{"wrong": 1.4, "wrong_words": [0]}, {"wrong": 0.2}])
def test_a_wrong_rate_or_no_word_is_refused(wrong):
    with pytest.raises(BadDefinition, match="a share from 0 to 1"):
        build_with_wrong_steps(**wrong)
