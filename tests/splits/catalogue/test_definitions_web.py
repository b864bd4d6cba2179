"""Pictures with labels of the web and of confused people, and ObjectNet, in their real layouts, made small."""

from __future__ import annotations

import json

import pytest
from farshift.core.errors import BadData
from twins import laid, picture, pulled, tar, twin, values, zipped

ACCEPTED = "ANIMAL-10N (research only), ImageNet (non-commercial research)"
"""The licences that `place` agrees to."""


def test_animals_are_labelled_by_the_names_of_their_files(place, tmp_path):
    files = {f"training/{n % 10}_img_{n}.jpg": picture(n) for n in range(30)}
    files |= {f"testing/{n % 10}_img_{n}.jpg": picture(100 + n) for n in range(10)}
    data = laid(tmp_path / "data", {"raw_image.zip": zipped(files)})
    split, parts = pulled(twin("animal10n/confused", place), data)
    assert parts == {"train": 30, "ood_test": 10}
    assert values(split, "ood_test", "animal") == list(range(10))


def webvision():
    train = {f"google/q{n % 3:04}/p{n}.jpg": picture(n) for n in range(12)}
    val = {f"val_images_256/val{n:06}.jpg": picture(100 + n) for n in range(6)}
    lists = {
        "info/train_filelist_google.txt": "".join(f"{name} {n % 4 * 25}\n" for n, name in enumerate(train)).encode(),
        "info/val_filelist.txt": "".join(f"val{n:06}.jpg {n % 3 * 25}\n" for n in range(6)).encode(),
        "info/synsets.txt": b"n01440764 tench\n",
    }
    return train, val, lists


def test_webvision_is_what_google_found_for_the_first_classes(place, tmp_path):
    train, val, lists = webvision()
    data = laid(tmp_path / "data", {
        "google_resized_256.tar": tar(train, mode="w"),
        "val_images_256.tar": tar(val, mode="w"),
        "info.tar": tar(lists, mode="w"),
    })  # fmt: skip
    split, parts = pulled(twin("webvision_mini/checked", place), data)
    assert parts == {"train": 6, "ood_test": 4}
    assert values(split, "train", "category") == [0, 0, 0, 25, 25, 25]


def test_a_picture_that_webvision_lists_and_does_not_hold_is_named(place, tmp_path):
    train, val, lists = webvision()
    del train["google/q0001/p1.jpg"]
    for name, files in (("google_resized_256", train), ("val_images_256", val), ("info", lists)):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / f"data/{name}.tar").write_bytes(tar(files, mode="w"))
    with pytest.raises(BadData, match="q0001/p1.jpg .1 of 6 are missing"):
        pulled(twin("webvision_mini/checked", place), tmp_path / "data")


SYNSETS = [f"n{number:08}" for number in (11, 22, 33, 44)]


def objectnet():
    files = {}
    for part in ("train", "val"):
        for number, synset in enumerate(SYNSETS):
            for n in range(4):
                files[f"{part}/{synset}/{n}.JPEG"] = picture(len(files), size=4 + number)
    for folder in ("air_freshener", "alarm_clock", "tie"):
        for n in range(3):
            files[f"objectnet-1.0/images/{folder}/{n}.png"] = picture(len(files), size=9)
    # Lines of the names of classes are not in the order of synsets.
    lines = ["bow tie", "tench", "digital clock", "analog clock"]
    output = {
        "folder_to_objectnet_label.json": {
            "alarm_clock": "Alarm clock", "air_freshener": "Air freshener", "tie": "Tie"
        },
        "objectnet_to_imagenet_1k.json": {"Alarm clock": "analog clock; digital clock", "Tie": "bow tie"},
        "pytorch_to_imagenet_2012_id.json": {"0": 1, "1": 3, "2": 2, "3": 0},
    }  # fmt: skip
    for name, content in output.items():
        files[f"objectnet-1.0/mappings/{name}"] = json.dumps(content).encode()
    files["objectnet-1.0/mappings/imagenet_to_label_2012_v2"] = ("\n".join(lines) + "\n").encode()
    return files


def test_objectnet_is_tested_on_the_things_that_imagenet_has(place, tmp_path):
    split, parts = pulled(twin("objectnet/odd_places", place), laid(tmp_path / "data", objectnet()))
    assert parts == {"train": 12, "id_test": 12, "ood_test": 6}
    assert values(split, "train", "thing") == [0] * 8 + [1] * 4
    assert set(values(split, "train", "folder")) == set(SYNSETS[1:])
    assert values(split, "ood_test", "thing") == [0] * 3 + [1] * 3
    assert set(values(split, "ood_test", "folder")) == {"alarm_clock", "tie"}


def test_objectnet_beside_an_imagenet_of_too_few_classes_is_refused(place, tmp_path):
    files = {name: content for name, content in objectnet().items() if SYNSETS[3] not in name}
    with pytest.raises(BadData, match="mappings have a class without a folder in ImageNet"):
        pulled(twin("objectnet/odd_places", place), laid(tmp_path / "data", files))
