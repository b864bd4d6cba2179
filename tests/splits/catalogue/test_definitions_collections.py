"""Labels of people and of the web, contexts, and the census, in their real layouts, made small."""

from __future__ import annotations

import io

import numpy as np
import pytest
from farshift.core.errors import BadData
from farshift.loaders.acquire.source import find_source
from twins import csv, laid, picture, pulled, tar, twin, values, zipped

ACCEPTED = "CC BY-NC 4.0, Clothing1M (research only)"
"""The licences that `place` agrees to."""


def records(rows, labels, start=0):
    """CIFAR's records: label bytes, and pixels that differ from row to row."""
    return b"".join(
        bytes([*([0] * (labels - 1)), row % 10]) + np.full(3072, (start + row) % 251, np.uint8).tobytes()
        for row in range(rows)
    )


def labels_of_people(arrays):
    import torch

    buffer = io.BytesIO()
    torch.save({name: np.array(values, "<i8") for name, values in arrays.items()}, buffer)
    return buffer.getvalue()


TRUE = np.arange(50) % 10
WRONG = np.where(np.arange(50) % 5 == 0, (TRUE + 1) % 10, TRUE)


def cifar10():
    files = {f"cifar-10-batches-bin/data_batch_{n + 1}.bin": records(10, 1, 10 * n) for n in range(5)}
    files["cifar-10-batches-bin/test_batch.bin"] = records(10, 1, 60)
    given = ("aggre_label", "random_label1", "random_label2", "random_label3", "worse_label")
    people = {"clean_label": TRUE} | dict.fromkeys(given, WRONG)
    return {"cifar-10-binary.tar.gz": tar(files), "CIFAR-10_human.pt": labels_of_people(people)}


@pytest.mark.parametrize("name", [
    "cifar10/human_aggregate", "cifar10/human_random1", "cifar10/human_random2", "cifar10/human_random3",
    "cifar10/human_worst",
])  # fmt: skip
def test_people_gave_the_labels_of_cifar10s_training_pictures(place, tmp_path, name):
    split, parts = pulled(twin(name, place), laid(tmp_path / "data", cifar10()))
    assert parts == {"train": 50, "id_test": 10}
    assert split.part("train").corrupted.sum() == 10


def test_one_person_gave_each_label_of_cifar100s_training_pictures(place, tmp_path):
    files = {"cifar-100-binary/train.bin": records(50, 2), "cifar-100-binary/test.bin": records(10, 2, 60)}
    lines = ["Image-batch,Worker-id,Work-time-in-seconds", *(f"{n}--{n + 4},{n // 5 % 5},40" for n in range(0, 50, 5))]
    data = laid(tmp_path / "data", {
        "cifar-100-binary.tar.gz": tar(files),
        "CIFAR-100_human.pt": labels_of_people({"clean_label": TRUE, "noisy_label": WRONG}),
        "side_info_cifar100N.csv": ("\n".join(lines) + "\n").encode(),
    })  # fmt: skip
    split, parts = pulled(twin("cifar100/human", place), data)
    assert parts == {"train": 50, "id_test": 10}
    assert split.part("train").corrupted.sum() == 10
    _, parts = pulled(twin("cifar100/annotators_apart", place), data)
    assert parts["train"] == 40


def clothing():
    files, lists = (
        {},
        {
            "noisy_train": range(12),
            "clean_train": range(12, 14),
            "clean_val": range(14, 18),
            "clean_test": range(18, 24),
        },
    )
    out = {"category_names_eng.txt": b"T-Shirt\nShirt\n"}
    key = "images/{0}/0{0}/{0},{1}.jpg".format
    for number in range(24):
        files[key(number % 3, number)] = picture(number)
    for name, numbers in lists.items():
        out[f"{name}_key_list.txt"] = "".join(f"{key(n % 3, n)}\n" for n in numbers).encode()
    out["noisy_label_kv.txt"] = "".join(f"{key(n % 3, n)} {n % 2}\n" for n in range(12)).encode()
    out["clean_label_kv.txt"] = "".join(f"{key(n % 3, n)} {n % 3}\n" for n in range(10, 24)).encode()
    return files | out


def test_clothing1m_joins_lists_of_keys_with_lists_of_labels(place, tmp_path):
    split, parts = pulled(twin("clothing1m/noisy", place), laid(tmp_path / "clothing1m", clothing()))
    assert parts == {"train": 12, "ood_val": 4, "ood_test": 6}
    assert values(split, "train", "clothing") == [0] * 6 + [1] * 6
    assert values(split, "ood_test", "clothing") == [0, 0, 1, 1, 2, 2]


def test_a_key_without_a_label_is_named(place, tmp_path):
    files = clothing() | {"noisy_label_kv.txt": b"images/0/00/0,0.jpg 1\n"}
    with pytest.raises(BadData, match="not in the form of clothing1m: 'images/1/01/1,1.jpg'"):
        pulled(twin("clothing1m/noisy", place), laid(tmp_path / "clothing1m", files))


def test_food_from_the_web_is_tested_on_the_curated_test(place, tmp_path):
    web, curated = {}, {}
    keys = [f"{dish}/{n:04d}.jpg" for dish in ("apple_pie", "waffles") for n in range(6)]
    for number, key in enumerate(keys):
        web[f"images/{key}"] = picture(number)
        curated[f"images/{key}"] = picture(100 + number)
    web["meta/imagelist.tsv"] = ("class_name/key\n" + "\n".join(keys) + "\n").encode()
    web["meta/verified_train.tsv"] = b"class_name/key\tverification_label\n"
    curated["meta/test.txt"] = "".join(f"{key.removesuffix('.jpg')}\n" for key in keys[::3]).encode()
    laid(tmp_path / "data/Food-101N_release", web)
    laid(tmp_path / "data/food-101", curated)
    split, parts = pulled(twin("food101n/curated", place), tmp_path / "data")
    assert parts == {"train": 12, "ood_test": 4}
    assert values(split, "ood_test", "food") == [0, 0, 1, 1]


def test_metashift_is_cats_and_dogs_among_other_things(place, tmp_path):
    files = {}
    for part, contexts in (("train", ("sofa", "bench")), ("test", ("shelf",))):
        for animal in ("cat", "dog"):
            for context in contexts:
                for number in range(3):
                    files[f"{part}/{animal}/{context}/{number}.jpg"] = picture(len(files))
    data = laid(tmp_path / "MetaShift-Cat-Dog-indoor-outdoor", files)
    split, parts = pulled(twin("metashift/contexts", place), data)
    assert parts == {"train": 12, "ood_test": 6}
    assert values(split, "ood_test", "animal") == [0, 0, 0, 1, 1, 1]
    assert set(values(split, "ood_test", "context")) == {"shelf"}


@pytest.mark.parametrize("name", ["nico/autumn_rock", "nico/dim_grass", "nico/outdoor_water"])
def test_nico_holds_out_pairs_of_contexts(place, tmp_path, name, monkeypatch):
    monkeypatch.setenv("FARSHIFT_ACCEPT", "NICO++ (non-commercial)")
    files = {}
    for context in ("autumn", "dim", "grass", "outdoor", "rock", "water"):
        for thing in ("bear", "truck"):
            for number in range(5):
                files[f"public_dg_0416/train/{context}/{thing}/{number}.jpg"] = picture(len(files))
    split, parts = pulled(twin(name, place), laid(tmp_path / "data", {"track_1.zip": zipped(files)}))
    assert parts == {"train": 32, "id_val": 4, "id_test": 4, "ood_test": 20}
    assert set(values(split, "ood_test", "context")) == set(name.split("/")[1].split("_"))


CODES = {"ca": "06", "tx": "48", "ny": "36", "fl": "12", "sd": "46", "pr": "72"}


def test_the_census_is_a_zip_for_each_state_and_incomes_are_filtered(place, tmp_path):
    head = "RT,AGEP,COW,SCHL,MAR,OCCP,POBP,RELP,WKHP,SEX,RAC1P,PINCP,PWGTP"
    files = {}
    for number, (state, code) in enumerate(CODES.items()):
        rows = [
            ("P", 20 + n, "" if n == 3 else 1, 16, 1, 4720, 6, 0, 40, 1 + n % 2, 1, 20000 + 10000 * n, 50 + number)
            for n in range(10)
        ]
        rows += [("P", 15, 1, 1, 1, 1, 6, 0, 40, 1, 1, 60000, 5), ("P", 70, 1, 1, 1, 1, 6, 0, "", 1, 1, 60000, 5)]
        rows += [("P", 40, 1, 1, 1, 1, 6, 0, 40, 1, 1, 100, 5), ("P", 3, "", "", 5, "", 6, 0, "", 1, 1, "", 5)]
        inside = {f"psam_p{code}.csv": csv(head, rows), "ACS2018_PUMS_README.pdf": b"pdf"}
        files[f"2018_csv_p{state}.zip"] = zipped(inside)
    split, parts = pulled(twin("acs_income_states/california", place), laid(tmp_path / "data", files))
    assert parts == {"train": 8, "id_val": 1, "id_test": 1, "ood_test": 50}
    assert set(values(split, "ood_test", "state")) == {"tx", "ny", "fl", "sd", "pr"}
    assert sum(values(split, "ood_test", "rich")) == 5 * 6
    assert values(split, "ood_test", "cow").count(0.0) == 5


INCOME = "COW ENG FER HINS1 HINS2 HINS3 HINS4 NWLA NWLK OCCP POBP RELP WKHP WKW WRK AGEP SEX ST MAR CIT RAC1P SCHL"
UNEMPLOYED = "ENG POBP RELP WKHP WKW WRK OCCP DIS ESP MIG MIL ANC NATIVITY DEAR DEYE DREM DPHY FER AGEP SEX ST MAR CIT RAC1P SCHL"


def states(source, rows):
    """A zip for each state of the source's files, with `rows` for the number of the state."""
    (distribution,) = find_source(source).definition.distributions
    return {pin.name: zipped({f"psam_p{n:02}.csv": rows(n)}) for n, pin in enumerate(distribution.files)}


def test_incomes_of_all_states_are_tested_in_new_england(place, tmp_path):
    names = [*INCOME.split(), "DIVISION", "PINCP", "PWGTP"]

    def rows(state):
        output = dict.fromkeys(names, 1) | {"ST": state, "DIVISION": state % 10, "PWGTP": 5}
        people = [output | {"AGEP": 20 + n, "WKHP": 40, "PINCP": 50000 + 4000 * n} for n in range(4)]
        people += [output | {"AGEP": 16, "WKHP": 40, "PINCP": 60000}, output | {"AGEP": 40, "WKHP": "", "PINCP": 60000}]
        people[0]["ENG"] = ""
        return csv(",".join(["RT", *names]), [["P", *person.values()] for person in people])

    data = laid(tmp_path / "data", states("acs_income_divisions", rows))
    split, parts = pulled(twin("acs_income_divisions/new_england", place), data)
    assert sum(parts.values()) == 51 * 4
    assert parts["ood_test"] == 5 * 4
    assert values(split, "ood_test", "rich") == [0] * 10 + [1] * 10
    assert values(split, "ood_test", "eng") == [0.0] * 5 + [1.0] * 15


def test_unemployment_is_tested_on_people_without_a_diploma(place, tmp_path):
    names = [*UNEMPLOYED.split(), "DIVISION", "ESR"]

    def rows(state):
        output = dict.fromkeys(names, 1) | {"ST": state, "AGEP": 30}
        people = [
            output | {"SCHL": f"{level:02}" if level < 10 else level, "ESR": 3 if level % 2 else 6, "WKW": state}
            for level in (1, 9, 15, 16, 24)
        ]
        people += [output | {"AGEP": 62}, output | {"AGEP": 17}]
        return csv(",".join(["RT", *names]), [["P", *person.values()] for person in people])

    data = laid(tmp_path / "data", states("acs_unemployment", rows))
    split, parts = pulled(twin("acs_unemployment/no_diploma", place), data)
    assert parts["ood_test"] == 51 * 3
    assert parts["train"] + parts["id_val"] + parts["id_test"] == 51 * 2
    assert values(split, "ood_test", "unemployed") == [1] * 51 * 3
    assert set(values(split, "train", "schooling")) == {"diploma"}


def years(rows):
    head = "RT,AGEP,COW,SCHL,MAR,OCCP,POBP,RELP,WKHP,SEX,RAC1P,PINCP,PWGTP"
    files = {}
    for year in range(2014, 2019):
        people = [("P", 20 + n, 1, 16, 1, 4720, 6, 0, 40, 1, 1, 40000 + 5000 * n, year) for n in range(rows)]
        people.append(("P", 30, 1, 16, 1, 4720, 6, 0, 40, 1, 1, 90, 5))
        name = f"ss{year % 100}pca.csv" if year < 2017 else "psam_p06.csv"
        files[f"{year}_csv_pca.zip"] = zipped({name: csv(head, people), "ACS_README.pdf": b"pdf"})
    return files


def test_incomes_of_a_year_are_tested_on_later_years(place, tmp_path):
    data = laid(tmp_path / "data", years(8))
    split, parts = pulled(twin("acs_income_years/from_2014", place, parameters={"id_test": 2}), data)
    assert parts == {"train": 6, "id_test": 2, "ood_test": 32}
    assert set(values(split, "ood_test", "year")) == {2015, 2016, 2017, 2018}
    assert sum(values(split, "ood_test", "rich")) == 4 * 5


def test_a_census_file_without_a_column_is_named(place, tmp_path):
    files = years(8)
    files["2016_csv_pca.zip"] = zipped({"ss16pca.csv": csv("RT,AGEP,PINCP", [("P", 30, 50000)])})
    with pytest.raises(BadData, match="ss16pca.csv"):
        pulled(twin("acs_income_years/from_2014", place, parameters={"id_test": 2}), laid(tmp_path / "data", files))
