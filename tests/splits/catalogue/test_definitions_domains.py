"""DomainBed's sets, labels of the web and ObjectNet, in their real layouts, made small."""

from __future__ import annotations

import json

import pytest
from farshift.core.errors import BadData, Unavailable
from twins import laid, picture, pulled, tar, twin, values, zipped

ACCEPTED = (
    "OfficeHome (non-commercial research), DomainNet (non-commercial research), CC BY-NC-SA 4.0, "
    "ANIMAL-10N (research only), ImageNet (non-commercial research)"
)
"""The licences that `place` agrees to."""


def folders(domains, categories, rows=10):
    files = {}
    for domain in domains:
        for number in range(rows):
            category = categories[number % len(categories)]
            files[f"{domain}/{category}/{number:03d}.jpg"] = picture(len(files))
    return files


def test_vlcs_has_a_folder_for_each_data_set(place, tmp_path):
    files = folders(["Caltech101", "LabelMe", "SUN09", "VOC2007"], ["bird", "car", "chair", "dog", "person"])
    split, parts = pulled(twin("vlcs/labelme", place), laid(tmp_path / "VLCS", files))
    assert parts == {"train": 24, "id_val": 3, "id_test": 3, "ood_test": 10}
    assert set(values(split, "ood_test", "domain")) == {"LabelMe"}
    assert values(split, "ood_test", "category") == sorted([0, 1, 2, 3, 4] * 2)


def test_vlcs_with_a_class_that_nobody_knows_or_a_missing_one_is_refused(place, tmp_path):
    files = folders(["Caltech101", "LabelMe", "SUN09", "VOC2007"], ["bird", "zebra"])
    with pytest.raises(BadData, match="zebra"):
        pulled(twin("vlcs/labelme", place), laid(tmp_path / "VLCS", files))


def test_office_home_has_spaces_in_a_folders_name_and_lists_beside_it(place, tmp_path):
    names = [f"Thing_{number}" for number in range(5)]
    files = folders(["Art", "Clipart", "Product", "Real World"], names)
    files |= {"ImageInfo.csv": b"x", "imagelist.txt": b"y"}
    (tmp_path / "data").mkdir()
    (tmp_path / "data/office_home.zip").write_bytes(
        zipped({f"OfficeHomeDataset_10072016/{name}": content for name, content in files.items()})
    )
    split, parts = pulled(twin("office_home/real_world", place), tmp_path / "data")
    assert parts == {"train": 24, "id_val": 3, "id_test": 3, "ood_test": 10}
    assert set(values(split, "ood_test", "domain")) == {"Real World"}
    assert set(values(split, "train", "category")) == {0, 1, 2, 3, 4}


CATEGORIES = ["bird", "bobcat", "cat", "coyote", "dog", "empty", "opossum", "rabbit", "raccoon", "squirrel"]


def traps(tmp_path):
    kinds = [{"id": 10 * number, "name": name} for number, name in enumerate([*CATEGORIES, "badger"])]
    images, notes, files = [], [], {}
    for number in range(44):
        location = ("38", "46", 100, "43", "7")[number % 5]
        images.append({"id": f"id{number}", "file_name": f"{number}.jpg", "location": location})
        notes.append({"image_id": f"id{number}", "category_id": 10 * (number // 4 % 11)})
        files[f"{number}.jpg"] = picture(number)
    output = {"categories": kinds, "images": images, "annotations": notes}
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "eccv_18_all_images_sm.tar.gz").write_bytes(tar(files, "eccv_18_all_images_sm/"))
    halves = {
        f"{name}_annotations.json": json.dumps(output | {"images": images[some], "annotations": notes[some]}).encode()
        for name, some in (("train", slice(0, 30)), ("trans_test", slice(25, 44)))
    }
    (folder / "eccv_18_annotations.tar.gz").write_bytes(tar(halves, "eccv_18_annotation_files/"))
    return folder


def test_terra_incognita_is_four_locations_and_ten_categories_of_the_camera_traps(place, tmp_path):
    folder = traps(tmp_path)
    split, parts = pulled(twin("terra_incognita/location_100", place), folder)
    every = [value for part in parts for value in values(split, part, "domain")]
    assert set(every) == {"location_100", "location_38", "location_43", "location_46"}
    assert len(every) == sum(number % 5 != 4 and number // 4 % 11 != 10 for number in range(44))
    assert set(values(split, "ood_test", "domain")) == {"location_100"}


def test_terra_incognita_may_also_be_the_folders_of_domainbeds_script(place, tmp_path):
    files = folders([f"location_{number}" for number in (38, 43, 46, 100)], CATEGORIES)
    name = twin("terra_incognita/location_46", place, distribution=1)
    split, parts = pulled(name, laid(tmp_path / "terra_incognita", files))
    assert parts == {"train": 24, "id_val": 3, "id_test": 3, "ood_test": 10}
    assert values(split, "ood_test", "category") == list(range(10))


def domain_net(folder):
    """A zip for each domain, with five pictures of two things."""
    domains = ["clipart", "infograph", "painting", "quickdraw", "real", "sketch"]
    files = folders(domains, ["aircraft_carrier", "zigzag"])
    for domain in domains:
        inside = {name: content for name, content in files.items() if name.startswith(f"{domain}/")}
        laid(folder, {f"{domain}.zip": zipped(inside)})
    return files


def test_domain_net_is_a_zip_for_each_domain(place, tmp_path):
    domain_net(tmp_path / "data")
    split, parts = pulled(twin("domain_net/sketch", place), tmp_path / "data")
    assert parts == {"train": 40, "id_val": 5, "id_test": 5, "ood_test": 10}
    assert set(values(split, "ood_test", "domain")) == {"sketch"}
    assert values(split, "ood_test", "category") == [0] * 5 + [1] * 5


def test_listed_duplicates_of_domain_net_are_left_out(place, tmp_path):
    listed = sorted(name for name in domain_net(tmp_path / "data") if name.startswith("sketch/"))[:3]
    split = twin("domain_net/sketch@2", place)
    with pytest.raises(Unavailable, match="domain_net_duplicates.txt is not available"):
        pulled(split, tmp_path / "data")
    laid(tmp_path / "data", {"domain_net_duplicates.txt": "\n".join([*listed, "real/zigzag/absent.jpg", ""]).encode()})
    _, parts = pulled(split, tmp_path / "data")
    assert parts == {"train": 40, "id_val": 5, "id_test": 5, "ood_test": 7}


def test_sviro_is_a_zip_of_ten_cars(place, tmp_path):
    cars = ["aclass", "escape", "hilux", "i3", "lexus", "tesla", "tiguan", "tucson", "x5", "zoe"]
    files = folders([f"SVIRO_DOMAINBED/{car}" for car in cars], ["0", "1", "2"])
    laid(tmp_path / "data", {"sviro.zip": zipped(files)})
    split, parts = pulled(twin("sviro/tesla", place), tmp_path / "data")
    assert parts == {"train": 72, "id_val": 9, "id_test": 9, "ood_test": 10}
    assert set(values(split, "ood_test", "domain")) == {"tesla"}


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
    with pytest.raises(BadData, match="not in the form of webvision: 'q0001/p1.jpg'"):
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
    with pytest.raises(BadData, match="not in the form of objectnet"):
        pulled(twin("objectnet/odd_places", place), laid(tmp_path / "data", files))
