"""The frozen splits by length and depth: which lengths they hold, and how their formats are paired."""

from __future__ import annotations

from collections import Counter

import pytest
from farshift import load
from farshift.benchmarks.benchmark import load_benchmarks
from farshift.loaders.acquire.source import load_sources
from farshift.splits.catalogue import find_manifest, list_manifests

GENERATED = {
    name
    for name, source in load_sources().items()
    if any(item.generator == "algorithmic" for item in source.definition.distributions)
}
SPLITS = [manifest for manifest in list_manifests() if manifest.name.split("/")[0] in GENERATED]
BUCKETS = [manifest for manifest in SPLITS if manifest.definition.rule == "severity_buckets/threshold"]


def test_every_generated_source_has_a_split_and_every_split_a_benchmark():
    assert {manifest.name.split("/")[0] for manifest in SPLITS} == GENERATED
    assert {manifest.full_name for manifest in SPLITS} <= {item.definition.split for item in load_benchmarks().values()}


def test_there_are_splits_by_length_by_difficulty_and_by_composition():
    kinds = Counter(manifest.definition.kind for manifest in SPLITS)
    assert kinds["length"] >= 50 and kinds["easy-to-hard"] >= 9 and kinds["compositional"] >= 2


def test_no_split_ships_rows():
    assert not [manifest.name for manifest in SPLITS if manifest.definition.ships_rows]


@pytest.mark.parametrize("manifest", BUCKETS, ids=lambda manifest: manifest.name)
def test_severity_buckets_reach_from_twice_the_training_length_on_and_hold_enough_rows(manifest):
    definition = manifest.definition
    first, second, *further = definition.parameters["bounds"]
    assert definition.parts["train"].rows >= 4000 and definition.parts["id_test"].rows == 500
    assert second <= 2 * first and all(2.4 * first <= bound <= 12.5 * first for bound in further)
    rows = manifest.audit()["groups"]["rows"]["ood_test"]
    assert len(rows) == len(further) + 1 and min(rows.values()) >= 300


def test_the_tasks_of_the_hierarchy_train_up_to_40_and_test_every_length_to_500():
    names = [manifest.name for manifest in SPLITS if manifest.name.startswith("chomsky_")]
    assert len(names) == 15
    assert all(find_manifest(name).definition.parameters["bounds"] == [40, 80, 200, 500] for name in names)
    train, test = (load("chomsky_even_pairs/length", part=part).arrow()["length"] for part in ("train", "ood_test"))
    assert set(train.to_pylist()) == set(range(1, 41))
    assert set(test.to_pylist()) == set(range(41, 501))


@pytest.mark.parametrize(
    ("plain", "other"),
    [
        ("mode/length", "mode_scratchpad/length"),
        ("addition/carry", "addition_reversed_hinted/carry"),
        ("merge_sort/length", "merge_sort_trace/length"),
    ],
)
def test_an_item_is_in_the_same_part_in_every_format(plain, other):
    for part in find_manifest(plain).definition.parts:
        items = [sorted(load(name, part=part).arrow()["item"].to_pylist()) for name in (plain, other)]
        assert items[0] == items[1]


def test_carries_grow_while_the_numbers_do_not():
    test, train = (load("addition/carry", part=part).arrow() for part in ("ood_test", "train"))
    assert max(train["length"].to_pylist()) == max(test["length"].to_pylist()) == 10
    assert max(train["carry_chain"].to_pylist()) == 2 and min(test["carry_chain"].to_pylist()) == 3


def test_no_two_long_sequences_are_sorted_into_the_same_answer():
    """As they were if the longest held every number there is."""
    answers = load("sort_distinct/length", part="ood_test").arrow()["output"].to_pylist()
    assert len(set(answers)) == len(answers) == 700


def test_every_nesting_but_the_held_out_ones_is_trained():
    seen = {part: load("listops/nesting", part=part).arrow()["nestings"].to_pylist() for part in ("train", "ood_test")}
    trained = {pair for row in seen["train"] for pair in row.split()}
    assert len(trained) == 14 and trained.isdisjoint({"MIN>MAX", "SM>MED"})
    assert all({"MIN>MAX", "SM>MED"} & set(row.split()) for row in seen["ood_test"])


def test_deep_and_broad_statements_are_trained_apart_and_tested_together():
    cells = {
        part: set(
            zip(
                *(load("entailment_grid/corner", part=part).arrow()[f].to_pylist() for f in ("depth", "breadth")),
                strict=True,
            )
        )
        for part in ("train", "ood_test")
    }
    assert cells["ood_test"] == {(depth, breadth) for depth in (5, 6, 7, 8) for breadth in (3, 4)}
    assert cells["train"] | cells["ood_test"] == {(d, b) for d in range(1, 9) for b in range(1, 5)}
    assert not cells["train"] & cells["ood_test"]
