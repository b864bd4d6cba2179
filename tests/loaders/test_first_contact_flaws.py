"""What was published keeps its flaws: a first pull declares inputs that stand in training and elsewhere, and does not
ask a split of one distribution for a shift that nobody claims."""

from __future__ import annotations

import shutil

import pytest
from farshift.core.errors import BadData
from farshift.loaders.acquire.trees import fetch_tree
from farshift.loaders.freezing.verify import verify_each
from farshift.splits.catalogue import find_manifest
from farshift.splits.manifest import TreePin
from twins import csv, laid, picture, pulled, tar, twin


@pytest.fixture
def place(tmp_path, monkeypatch, cache):
    folder = tmp_path / "definitions"
    folder.mkdir()
    monkeypatch.setenv("FARSHIFT_PATH", str(folder))
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FARSHIFT_ACCEPT", "Waterbirds (non-commercial research)")
    return folder


def birds(same=()):
    """Training: 12 rows, all on their own background; validation and test: every cell alike."""
    files, rows = {}, []
    for number in range(44):
        split = 0 if number < 12 else 1 if number < 28 else 2
        bird = number % 2
        position = bird if split == 0 else number // 2 % 2
        files[f"001.Bird/{number}.jpg"] = picture(0 if number in same else number)
        rows.append((number + 1, f"001.Bird/{number}.jpg", bird, split, position, "x"))
    return files | {"metadata.csv": csv("img_id,img_filename,y,split,place,place_filename", rows)}


def test_inputs_that_stand_in_training_too_are_declared_as_they_are_counted(place, tmp_path):
    name = twin("waterbirds/official", place)
    pulled(name, laid(tmp_path / "data", birds(same=(12, 40))))
    result = find_manifest(name)
    assert result.definition.declared.duplicates == {"train/ood_test": 1, "train/ood_val": 1}
    assert "declared" not in (place / f"splits/manifests/{name}/v1/split.toml").read_text()
    assert verify_each([result])[0].state == "verified"


def comments(shares):
    """Rows in turn of men and of nobody, so many of each in training; ten of each validate, and ten test."""
    head = ",comment_text,toxicity,split,male,female,LGBTQ,christian,muslim,other_religions,black,white"
    rows = []
    for part, counts in (("train", shares), ("val", (10, 10)), ("test", (10, 10))):
        for man, count in enumerate(counts):
            rows += [(0, f"{part} {man} {n}", n % 2, part, man, *[0] * 7) for n in range(count)]
    return {"all_data_with_identities.csv": csv(head, rows)}


def test_a_split_of_one_distribution_needs_groups_of_other_sizes(place, tmp_path):
    name = twin("wilds_civilcomments/official", place)
    with pytest.raises(BadData, match="as declared: the largest group of training has 20 rows, the smallest 15"):
        pulled(name, laid(tmp_path / "even", comments((20, 15))))
    shutil.rmtree(tmp_path / "home")
    split, _ = pulled(name, laid(tmp_path / "data", comments((30, 15))))
    assert "one distribution, as declared" in split.manifest.audit()["why"]


def names(pin, folder):
    return fetch_tree(pin, (folder,))[1].names()


def test_the_tree_of_a_name_is_found_beside_others(tmp_path):
    pin = TreePin(name="birds")
    item, two = {"a/1.txt": b"1", "b/1.txt": b"1"}, {"a/2.txt": b"2", "b/2.txt": b"2"}
    laid(tmp_path / "data", {"zoo.tar": tar(item, mode="w"), "birds.tar": tar(two, mode="w")})
    assert names(pin, tmp_path / "data") == ["a/2.txt", "b/2.txt"]
    laid(tmp_path / "only", {"archive.tar": tar(item, mode="w")})
    assert names(pin, tmp_path / "only") == ["a/1.txt", "b/1.txt"]
    laid(tmp_path / "whole", two | {"archive.tar": tar(item, mode="w")})
    assert "a/2.txt" in names(pin, tmp_path / "whole")
    laid(tmp_path / "named/birds", two)
    assert names(pin, tmp_path / "named") == ["a/2.txt", "b/2.txt"]
