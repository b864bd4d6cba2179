"""DomainBed's sets in their real layouts, made small: a domain is held out, and a tenth of each other validates."""

from __future__ import annotations

import json

import pytest
from farshift.core.errors import BadData, Unavailable
from twins import laid, picture, pulled, tar, twin, values, zipped

ACCEPTED = "OfficeHome (non-commercial research), DomainNet (non-commercial research), CC BY-NC-SA 4.0"
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
