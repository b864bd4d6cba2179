"""Families of splits: what a listing folds into a line, and what a headline counts once."""

from __future__ import annotations

from collections import Counter

import pytest
from farshift.splits.catalogue import (
    format_family_name,
    format_headline,
    get_family,
    group_by_family,
    list_manifests,
    list_split_records,
)

RECORDS = list_split_records()


def record(name: str, version: int = 1, of: str = "", source: str = "a") -> dict:
    return {"name": name, "version": version, "family": of or name, "source": source}


def test_the_grid_of_label_noise_is_a_family_for_each_rule_and_source():
    grid = [item for item in RECORDS if item["name"].rpartition("_")[2].startswith("draw")]
    sizes = Counter(item["family"] for item in grid)
    assert len(grid) == 300
    assert set(sizes.values()) == {15}
    forms = ("symmetric_exclusive", "symmetric_inclusive", "pair_flip", "asymmetric", "instance_dependent")
    sources = ("optdigits", "pendigits", "mnist", "fashion_mnist")
    assert set(sizes) == {f"{source}/{form}" for source in sources for form in forms}


@pytest.mark.parametrize("kind", ["domain", "length", "compositional", "easy-to-hard"])
def test_splits_of_other_kinds_are_families_of_their_own(kind):
    assert all(item["family"] == item["name"] for item in RECORDS if item["kind"] == kind)


def test_labels_that_people_gave_are_not_rates_of_one_rule():
    assert get_family(
        next(item for item in list_manifests() if item.name == "cifar10_pictures/human_worst").definition
    ) == ("cifar10_pictures/human_worst")


def test_a_family_is_of_one_source_kind_and_rule():
    """A later version of a split may have a source of its own, named by the version."""

    def traits(item: dict) -> tuple[str, str]:
        return item["source"].removesuffix(f"_v{item['version']}"), item["kind"]

    result = {item["family"]: traits(item) for item in RECORDS}
    rules: dict[str, set[str]] = {}
    for item in list_manifests():
        rules.setdefault(get_family(item.definition), set()).add(item.definition.rule)
    assert all(traits(item) == result[item["family"]] for item in RECORDS)
    assert {name: of for name, of in rules.items() if len(of) > 1} == {}


def test_no_record_is_lost_by_folding():
    folded = [item for members in group_by_family(RECORDS) for item in members]
    assert sorted(folded, key=repr) == sorted(RECORDS, key=repr)


def test_a_family_is_named_by_its_first_split_and_the_newest_version():
    (members,) = group_by_family([record("a/b", 1), record("a/b", 2), record("a/b", 3)])
    assert format_family_name(members) == "a/b@3 and 2 older"
    (members,) = group_by_family([record("a/n_1", of="a/n"), record("a/n_2", of="a/n")])
    assert format_family_name(members) == "a/n_1@1 and 1 more"
    assert format_family_name([record("a/b")]) == "a/b@1"


def test_a_headline_counts_families_manifests_and_sources():
    several = [record("a/n_1", of="a/n"), record("a/n_2", of="a/n"), record("b/c", source="b")]
    assert format_headline(several) == "2 families (3 manifests) over 2 sources"
    assert format_headline(several[:1]) == "1 family (1 manifest) over 1 source"
    assert format_headline([]) == "0 families (0 manifests) over 0 sources"
