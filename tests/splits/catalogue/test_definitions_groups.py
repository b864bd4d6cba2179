"""Spurious correlations and subpopulations in their real layouts, made small."""

from __future__ import annotations

import shutil

import pytest
from farshift.core.errors import BadData
from servers import web
from twins import csv, laid, picture, pulled, tar, twin, values, zipped

ACCEPTED = "Waterbirds (non-commercial research), CelebA (non-commercial research)"
"""The licences that `place` agrees to."""


def waterbirds():
    files, rows = {}, []
    for number in range(40):
        split = (0, 0, 0, 1, 2)[number // 8]
        bird = number % 2
        background = bird if split == 0 and number % 8 else number // 2 % 2
        name = f"{1 + bird:03d}.Some_Bird/Some_Bird_{number:04d}.jpg"
        files[name] = picture(number)
        rows.append((number + 1, name, bird, split, background, f"/o/ocean/{number}.jpg"))
    return files | {"metadata.csv": csv("img_id,img_filename,y,split,place,place_filename", rows)}


def test_waterbirds_stand_before_their_own_background_in_training(place, tmp_path):
    data = laid(tmp_path / "data/waterbird_complete95_forest2water2", waterbirds())
    split, parts = pulled(twin("waterbirds/official", place), data)
    assert parts == {"train": 24, "ood_val": 8, "ood_test": 8}
    assert (
        values(split, "ood_test", "cell")
        == ["land/land"] * 2 + ["land/water"] * 2 + ["water/land"] * 2 + ["water/water"] * 2
    )
    train = values(split, "train", "cell")
    assert train.count("land/land") + train.count("water/water") == 24
    assert set(values(split, "ood_test", "species")) == {"001.Some_Bird", "002.Some_Bird"}


NAMES = ["Blond_Hair" if place == 9 else "Male" if place == 20 else f"Attribute_{place}" for place in range(40)]


def faces():
    """Of 24 faces: name, blond, male, part."""
    for number in range(24):
        man = number % 2
        yield f"{number + 1:06d}.jpg", int(number % 4 == 0 or number in (1, 17)), man, (0, 0, 1, 2)[number // 6]


def attributes(blond: int, male: int) -> list[int]:
    return [1 if {"Blond_Hair": blond, "Male": male}.get(name) else -1 for name in NAMES]


def celeba():
    files = {f"img_align_celeba/{name}": picture(number) for number, (name, *_) in enumerate(faces())}
    lines = [f"{name}  {' '.join(map(str, attributes(blond, male)))}" for name, blond, male, _ in faces()]
    return {
        "img_align_celeba.zip": zipped(files),
        "list_attr_celeba.txt": ("24\n" + " ".join(NAMES) + " \n" + "\n".join(lines) + "\n").encode(),
        "list_eval_partition.txt": "".join(f"{name} {part}\n" for name, *_, part in faces()).encode(),
    }


def test_celeba_joins_faces_with_two_lists(place, tmp_path):
    split, parts = pulled(twin("celeba/blond", place), laid(tmp_path / "data", celeba()))
    assert parts == {"train": 12, "ood_val": 6, "ood_test": 6}
    assert values(split, "train", "cell") == ["0/0"] * 3 + ["0/1"] * 5 + ["1/0"] * 3 + ["1/1"]
    assert values(split, "ood_test", "picture") == [f"{number:06d}.jpg" for number in range(19, 25)]


def test_the_csv_form_of_wilds_gives_the_same_rows(place, tmp_path):
    first, _ = pulled(twin("celeba/blond", place), laid(tmp_path / "data", celeba()))
    shutil.rmtree(tmp_path / "home/splits")
    shutil.rmtree(tmp_path / "home/sources")
    files = {f"img_align_celeba/{name}": picture(number) for number, (name, *_) in enumerate(faces())}
    rows = [(name, *attributes(blond, male)) for name, blond, male, _ in faces()]
    files["list_attr_celeba.csv"] = csv(",".join(["image_id", *NAMES]), rows)
    files["list_eval_partition.csv"] = csv("image_id,partition", [(name, part) for name, *_, part in faces()])
    second, _ = pulled(twin("celeba/blond", place, distribution=1), laid(tmp_path / "data2/celebA_v1.0", files))
    assert second.source.definition.digest == first.source.definition.digest


def test_a_list_that_lacks_a_face_is_named(place, tmp_path):
    files = celeba() | {"list_eval_partition.txt": b"000001.jpg 0\n"}
    with pytest.raises(BadData, match=r"list_attr_celeba.txt, line 4: published \(column 'part 1'\) is missing"):
        pulled(twin("celeba/blond", place), laid(tmp_path / "data", files))


def test_an_archive_comes_over_http_and_is_pulled_without_data_of_ones_own(place, farshift_json):
    with web(birds=tar(waterbirds(), "waterbird_complete95_forest2water2/")) as site:
        mirror = {"sort": "https", "url": f"{site.url}/birds"}
        name = twin("waterbirds/official", place, mirrors={"waterbird_complete95_forest2water2": [mirror]})
        (done,) = farshift_json("splits", "pull", name)
    assert done["parts"] == {"train": 24, "ood_val": 8, "ood_test": 8}
