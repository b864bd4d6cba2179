"""Rules over facts and their compositions, held to their papers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import coverage, two_hop
from farshift.splits.rules import knowledge

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
