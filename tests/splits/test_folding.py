"""Families of splits: what a listing folds into a line, and what a headline counts once."""

from __future__ import annotations

import re
from collections import Counter

import farshift as fs
import pytest
from farshift.core.errors import FarshiftError
from farshift.splits.catalogue import (
    find_manifest,
    fold_names,
    format_family_name,
    format_headline,
    get_family,
    group_by_family,
    list_manifests,
    list_split_records,
    read_published_identities,
    resolve_member,
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
    (members,) = group_by_family([record("a/xi1", of="a/n"), record("a/xi2", of="a/n")])
    assert format_family_name(members) == "a/xi1 and 1 more"
    assert format_family_name([record("a/b")]) == "a/b@1"


def test_a_headline_counts_families_manifests_and_sources():
    several = [record("a/n_1", of="a/n"), record("a/n_2", of="a/n"), record("b/c", source="b")]
    assert format_headline(several) == "2 families (3 manifests) over 2 sources"
    assert format_headline(several[:1]) == "1 family (1 manifest) over 1 source"
    assert format_headline([]) == "0 families (0 manifests) over 0 sources"


def test_a_grid_of_label_noise_is_named_by_its_parameters():
    names = ["a/n_20_draw1", "a/n_20_draw2", "a/n_5_draw1", "a/n_5_draw2"]
    (members,) = group_by_family([record(name, of="a/n") for name in names])
    assert format_family_name(members) == "a/n?rate=5,20&draw=1,2"
    assert fold_names(["a/random", *names]) == "a/n?rate=5,20&draw=1,2 and 1 more"
    assert fold_names(["a/harder_20", "a/harder_40"]) == "a/harder?rate=20,40"
    assert fold_names(["a/n_20_draw1"]) == "a/n_20_draw1"


def test_every_member_of_the_grid_is_found_by_its_parameters_with_the_same_identity():
    published = read_published_identities()
    grid = [item["name"] for item in RECORDS if re.search(r"_\d+_draw\d+$|harder_noisier_\d+$", item["name"])]
    assert len(grid) == 312
    for name in grid:
        spelt = re.sub(r"_draw(\d+)$", r"&draw=\1", name)
        spelt = re.sub(r"_(\d+)(?=&|$)", r"?rate=\1", spelt)
        assert resolve_member(f"{spelt}@1", "split", grid) == f"{name}@1"
    manifest = find_manifest("fashion_mnist/symmetric_exclusive?draw=1&rate=40")
    assert manifest.full_name == "fashion_mnist/symmetric_exclusive_40_draw1@1"
    assert manifest.identity == published[manifest.full_name]
    assert fs.benchmark("mnist/pair_flip?rate=20&draw=1").name == "mnist/pair_flip_20_draw1"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (
            "mnist/pair_flip?rate=20",
            r"names 5 splits: give one value each of mnist/pair_flip\?rate=20,40,45&draw=1,2,3",
        ),
        ("mnist/pair_flip?rate=30&draw=1", "names no splits: give one value each"),
        ("mnist/pair_flip?level=1", "names no splits"),
        ("mnist/pair_flip?rate=20&draw=1@7", "has no version '7'"),
        (
            "mnist/pair_flop?rate=20&draw=1",
            r"no split with parameters named 'mnist/pair_flop': did you mean mnist/pair_flip\?",
        ),
        ("?rate=20", "no split with parameters named ''"),
    ],
)
def test_parameters_that_name_no_single_split_are_refused(name, complaint):
    with pytest.raises(FarshiftError, match=complaint):
        find_manifest(name)
