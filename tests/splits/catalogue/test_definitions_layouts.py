"""Definitions of public data in their real layouts, made small: pulled into their parts by their own reader and rule."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from farshift import FarshiftError, evaluate, load, score
from farshift.core.errors import BadData, Unavailable
from farshift.loaders.acquire.source import find_source
from farshift.splits.catalogue import find_manifest
from hub_client import environment
from hub_server import REPOSITORY
from hub_server import serving as hub_serving
from servers import web
from twins import csv, gz, laid, measured, npy, picture, pulled, tar, twin, values, zipped

RESEARCH = ("OfficeHome", "DomainNet", "Clothing1M", "ANIMAL-10N", "ImageNet", "Waterbirds", "CelebA", "NICO++")
ACCEPTED = "CC BY-NC 4.0, CC BY-NC-SA 4.0, Amazon reviews (research only), Clothing1M (research only), "
ACCEPTED += "ANIMAL-10N (research only), NICO++ (non-commercial), "
ACCEPTED += ", ".join(f"{name} (non-commercial research)" for name in RESEARCH)
"""The licences that `place` agrees to."""

Files = dict[str, bytes]


def lines(texts) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def jsonl(records) -> bytes:
    return lines(map(json.dumps, records))


def packed(array=None, **arrays) -> bytes:
    np.savez(buffer := io.BytesIO(), **arrays)
    return buffer.getvalue()


def folders(domains, categories, rows: int = 10, head: str = "") -> Files:
    """Pictures in folders of domains and, in turn, categories."""
    paths = [f"{head}{domain}/{categories[n % len(categories)]}/{n:03d}.jpg" for domain in domains for n in range(rows)]
    return {path: picture(number) for number, path in enumerate(paths)}


# Labels of people and of the web, contexts, and the census.

TRUE = np.arange(50) % 10
WRONG = np.where(np.arange(50) % 5 == 0, (TRUE + 1) % 10, TRUE)
GIVEN = ("aggre_label", "random_label1", "random_label2", "random_label3", "worse_label")
BATCHES = {
    "cifar-10": (
        1,
        [*(f"cifar-10-batches-bin/data_batch_{n}.bin" for n in range(1, 6)), "cifar-10-batches-bin/test_batch.bin"],
    ),
    "cifar-100": (2, ["cifar-100-binary/train.bin", "cifar-100-binary/test.bin"]),
}


def pixels(number: int, shape=(3, 32, 32)) -> np.ndarray:
    return (np.arange(np.prod(shape), dtype=np.int64) * (number + 3) + number).astype(np.uint8).reshape(shape)


def cifar(name: str, *rows: int) -> Files:
    """The binary version, with some rows a file: label bytes, then pixels that differ from row to row."""
    labels, members = BATCHES[name]
    files, number = {}, 0
    for member, count in zip(members, rows, strict=True):
        own = [bytes([*[0] * (labels - 1), row % 10]) + pixels(number + row).tobytes() for row in range(count)]
        files[member], number = b"".join(own), number + count
    return {f"{name}-binary.tar.gz": tar(files)}


def by_people(**arrays) -> bytes:
    torch.save(
        {name: array.astype("<i8") for name, array in ({"clean_label": TRUE} | arrays).items()}, out := io.BytesIO()
    )
    return out.getvalue()


def cifar10() -> Files:
    return cifar("cifar-10", *[10] * 6) | {"CIFAR-10_human.pt": by_people(**dict.fromkeys(GIVEN, WRONG))}


def cifar100() -> Files:
    worker = ["Image-batch,Worker-id,Work-time-in-seconds", *(f"{n}--{n + 4},{n // 5 % 5},40" for n in range(0, 50, 5))]
    people = {"CIFAR-100_human.pt": by_people(noisy_label=WRONG), "side_info_cifar100N.csv": lines(worker)}
    return cifar("cifar-100", 50, 10) | people


def clothing() -> Files:
    key = "images/{0}/0{0}/{0},{1}.jpg".format
    keys = [key(number % 3, number) for number in range(24)]
    files = {name: picture(number) for number, name in enumerate(keys)} | {
        "category_names_eng.txt": b"T-Shirt\nShirt\n"
    }
    for name, first, end in (
        ("noisy_train", 0, 12),
        ("clean_train", 12, 14),
        ("clean_val", 14, 18),
        ("clean_test", 18, 24),
    ):
        files[f"{name}_key_list.txt"] = lines(keys[first:end])
    files["noisy_label_kv.txt"] = lines(f"{keys[n]} {n % 2}" for n in range(12))
    return files | {"clean_label_kv.txt": lines(f"{keys[n]} {n % 3}" for n in range(10, 24))}


def food() -> Files:
    keys = [f"{dish}/{n:04d}.jpg" for dish in ("apple_pie", "waffles") for n in range(6)]
    web = {f"Food-101N_release/images/{key}": picture(number) for number, key in enumerate(keys)}
    web["Food-101N_release/meta/imagelist.tsv"] = lines(["class_name/key", *keys])
    curated = {f"food-101/images/{key}": picture(100 + number) for number, key in enumerate(keys)}
    return web | curated | {"food-101/meta/test.txt": lines(key.removesuffix(".jpg") for key in keys[::3])}


def metashift() -> Files:
    train = folders(["train/cat", "train/dog"], ["sofa", "bench"], 6)
    return train | {name: picture(50 + n) for n, name in enumerate(folders(["test/cat", "test/dog"], ["shelf"], 3))}


def nico() -> Files:
    contexts = ("autumn", "dim", "grass", "outdoor", "rock", "water")
    return {"track_1.zip": zipped(folders(contexts, ["bear", "truck"], head="public_dg_0416/train/"))}


PERSON = "RT,AGEP,COW,SCHL,MAR,OCCP,POBP,RELP,WKHP,SEX,RAC1P,PINCP,PWGTP"
CODES = {"ca": "06", "tx": "48", "ny": "36", "fl": "12", "sd": "46", "pr": "72"}


def census_states() -> Files:
    files = {}
    for number, (state, code) in enumerate(CODES.items()):
        rows = [
            ("P", 20 + n, "" if n == 3 else 1, 16, 1, 4720, 6, 0, 40, 1 + n % 2, 1, 20000 + 10000 * n, 50 + number)
            for n in range(10)
        ]
        rows += [("P", 15, 1, 1, 1, 1, 6, 0, 40, 1, 1, 60000, 5), ("P", 70, 1, 1, 1, 1, 6, 0, "", 1, 1, 60000, 5)]
        rows += [("P", 40, 1, 1, 1, 1, 6, 0, 40, 1, 1, 100, 5), ("P", 3, "", "", 5, "", 6, 0, "", 1, 1, "", 5)]
        inside = {f"psam_p{code}.csv": csv(PERSON, rows), "ACS2018_PUMS_README.pdf": b"pdf"}
        files[f"2018_csv_p{state}.zip"] = zipped(inside)
    return files


def census_years() -> Files:
    files = {}
    for year in range(2014, 2019):
        people = [("P", 20 + n, 1, 16, 1, 4720, 6, 0, 40, 1, 1, 40000 + 5000 * n, year) for n in range(8)]
        people.append(("P", 30, 1, 16, 1, 4720, 6, 0, 40, 1, 1, 90, 5))
        name = f"ss{year % 100}pca.csv" if year < 2017 else "psam_p06.csv"
        files[f"{year}_csv_pca.zip"] = zipped({name: csv(PERSON, people), "ACS_README.pdf": b"pdf"})
    return files


INCOME = "COW ENG FER HINS1 HINS2 HINS3 HINS4 NWLA NWLK OCCP POBP RELP WKHP WKW WRK AGEP SEX ST MAR CIT RAC1P SCHL"
INCOME += " DIVISION PINCP PWGTP"
UNEMPLOYED = "ENG POBP RELP WKHP WKW WRK OCCP DIS ESP MIG MIL ANC NATIVITY DEAR DEYE DREM DPHY FER AGEP SEX ST MAR CIT"
UNEMPLOYED += " RAC1P SCHL DIVISION ESR"


def census(source: str, names: str, people: Callable[[int], list[dict[str, Any]]]) -> Files:
    """A zip for each state of the source's files, with people who differ from ones in some columns."""
    (distribution,) = find_source(source).definition.distributions

    def table(state: int) -> bytes:
        rows = [dict.fromkeys(names.split(), 1) | {"ST": state} | person for person in people(state)]
        return csv(",".join(["RT", *names.split()]), [["P", *row.values()] for row in rows])

    return {pin.name: zipped({f"psam_p{n:02}.csv": table(n)}) for n, pin in enumerate(distribution.files)}


def list_earners(state: int) -> list[dict[str, Any]]:
    same = {"DIVISION": state % 10, "PWGTP": 5, "WKHP": 40, "PINCP": 60000}
    people = [same | {"AGEP": 20 + n, "PINCP": 50000 + 4000 * n, "ENG": "" if n == 0 else 1} for n in range(4)]
    return [*people, same | {"AGEP": 16}, same | {"AGEP": 40, "WKHP": ""}]


def list_unemployed(state: int) -> list[dict[str, Any]]:
    levels = {1: "01", 9: "09", 15: 15, 16: 16, 24: 24}
    people = [{"AGEP": 30, "SCHL": text, "ESR": 3 if n % 2 else 6, "WKW": state} for n, text in levels.items()]
    return [*people, {"AGEP": 62}, {"AGEP": 17}]


# Domains, labels of the web, ObjectNet, groups.

CATEGORIES = ["bird", "bobcat", "cat", "coyote", "dog", "empty", "opossum", "rabbit", "raccoon", "squirrel"]
DOMAINS = ["clipart", "infograph", "painting", "quickdraw", "real", "sketch"]
SYNSETS = ["n01440764", "n01443537", "n02120079"]
THINGS = [f"n{number:08}" for number in (11, 22, 33, 44)]


def traps() -> Files:
    kinds = [{"id": 10 * number, "name": name} for number, name in enumerate([*CATEGORIES, "badger"])]
    places = ("38", "46", 100, "43", "7")
    images = [{"id": f"id{n}", "file_name": f"{n}.jpg", "location": places[n % 5]} for n in range(44)]
    notes = [{"image_id": f"id{n}", "category_id": 10 * (n // 4 % 11)} for n in range(44)]
    halves = {
        f"{name}_annotations.json": json.dumps(
            {"categories": kinds, "images": images[some], "annotations": notes[some]}
        )
        for name, some in (("train", slice(0, 30)), ("trans_test", slice(25, 44)))
    }
    halves = {name: text.encode() for name, text in halves.items()}
    return {
        "eccv_18_all_images_sm.tar.gz": tar({f"{n}.jpg": picture(n) for n in range(44)}, "eccv_18_all_images_sm/"),
        "eccv_18_annotations.tar.gz": tar(halves, "eccv_18_annotation_files/"),
    }


def domain_net() -> Files:
    """A zip for each domain, with five pictures of two things."""
    files = folders(DOMAINS, ["aircraft_carrier", "zigzag"])
    return {
        f"{domain}.zip": zipped({name: content for name, content in files.items() if name.startswith(f"{domain}/")})
        for domain in DOMAINS
    }


def animals() -> Files:
    files = {f"training/{n % 10}_img_{n}.jpg": picture(n) for n in range(30)}
    return {"raw_image.zip": zipped(files | {f"testing/{n % 10}_img_{n}.jpg": picture(100 + n) for n in range(10)})}


def webvision(absent: str = "") -> Files:
    train = {f"google/q{n % 3:04}/p{n}.jpg": picture(n) for n in range(12)}
    lists = {
        "info/train_filelist_google.txt": lines(f"{name} {n % 4 * 25}" for n, name in enumerate(train)),
        "info/val_filelist.txt": lines(f"val{n:06}.jpg {n % 3 * 25}" for n in range(6)),
        "info/synsets.txt": b"n01440764 tench\n",
    }
    train.pop(absent, None)
    val = {f"val_images_256/val{n:06}.jpg": picture(100 + n) for n in range(6)}
    archives = {"google_resized_256": train, "val_images_256": val, "info": lists}
    return {f"{name}.tar": tar(files, mode="w") for name, files in archives.items()}


def objectnet() -> Files:
    paths = [f"{part}/{synset}/{n}.JPEG" for part in ("train", "val") for synset in THINGS for n in range(4)]
    files = {name: picture(number, size=4 + THINGS.index(name.split("/")[1])) for number, name in enumerate(paths)}
    for folder, n in product(("air_freshener", "alarm_clock", "tie"), range(3)):
        files[f"objectnet-1.0/images/{folder}/{n}.png"] = picture(len(files), size=9)
    labels = {"alarm_clock": "Alarm clock", "air_freshener": "Air freshener", "tie": "Tie"}
    mappings = {
        "folder_to_objectnet_label.json": json.dumps(labels),
        "objectnet_to_imagenet_1k.json": json.dumps({"Alarm clock": "analog clock; digital clock", "Tie": "bow tie"}),
        "pytorch_to_imagenet_2012_id.json": json.dumps({"0": 1, "1": 3, "2": 2, "3": 0}),
        # Lines of the names of classes are not in the order of synsets.
        "imagenet_to_label_2012_v2": "bow tie\ntench\ndigital clock\nanalog clock\n",
    }
    return files | {f"objectnet-1.0/mappings/{name}": text.encode() for name, text in mappings.items()}


def waterbirds() -> Files:
    files, rows = {}, []
    for number in range(40):
        split, bird = (0, 0, 0, 1, 2)[number // 8], number % 2
        background = bird if split == 0 and number % 8 else number // 2 % 2
        name = f"{1 + bird:03d}.Some_Bird/Some_Bird_{number:04d}.jpg"
        files[name] = picture(number)
        rows.append((number + 1, name, bird, split, background, f"/o/ocean/{number}.jpg"))
    return files | {"metadata.csv": csv("img_id,img_filename,y,split,place,place_filename", rows)}


FACE = ["Blond_Hair" if place == 9 else "Male" if place == 20 else f"Attribute_{place}" for place in range(40)]


def list_faces() -> list[tuple[str, list[int], int]]:
    """Of 24 faces: name, attributes, part."""
    rows = []
    for number in range(24):
        known = {"Blond_Hair": number % 4 == 0 or number in (1, 17), "Male": number % 2}
        rows.append(
            (f"{number + 1:06d}.jpg", [1 if known.get(name) else -1 for name in FACE], (0, 0, 1, 2)[number // 6])
        )
    return rows


def celeba() -> Files:
    files = {f"img_align_celeba/{name}": picture(number) for number, (name, *_) in enumerate(list_faces())}
    rows = [f"{name}  {' '.join(map(str, known))}" for name, known, _ in list_faces()]
    return {
        "img_align_celeba.zip": zipped(files),
        "list_attr_celeba.txt": lines(["24", " ".join(FACE) + " ", *rows]),
        "list_eval_partition.txt": lines(f"{name} {part}" for name, _, part in list_faces()),
    }


def celeba_of_wilds() -> Files:
    files = {f"img_align_celeba/{name}": picture(number) for number, (name, *_) in enumerate(list_faces())}
    files["list_attr_celeba.csv"] = csv(
        ",".join(["image_id", *FACE]), [(name, *known) for name, known, _ in list_faces()]
    )
    parts = [(name, part) for name, _, part in list_faces()]
    return files | {"list_eval_partition.csv": csv("image_id,partition", parts)}


# Corrupted, adversarial and recollected tests.

FIFTEEN = (
    "gaussian_noise shot_noise impulse_noise defocus_blur glass_blur motion_blur zoom_blur snow frost fog brightness"
)
FIFTEEN = [*FIFTEEN.split(), "contrast", "elastic_transform", "pixelate", "jpeg_compression"]
FOUR = ["speckle_noise", "gaussian_blur", "spatter", "saturate"]
OF_DIGITS = "brightness canny_edges dotted_line fog glass_blur impulse_noise motion_blur rotate scale shear shot_noise"
OF_DIGITS = [*OF_DIGITS.split(), "spatter", "stripe", "translate", "zigzag"]


def corrupted(name: str, without: str = "") -> Files:
    """Nineteen arrays, rows first and colours last, five severities end to end; and the labels five times."""
    files = {f"{name}/labels.npy": npy(np.tile(np.arange(4) % 3, 5))}
    for position, corruption in enumerate([*FIFTEEN, *FOUR]):
        every = [pixels(1000 + 100 * position + row).transpose(1, 2, 0) for row in range(20)]
        files |= {} if corruption == without else {f"{name}/{corruption}.npy": npy(np.stack(every))}
    return {f"{name}.tar": tar(files, mode="w")}


def recollected(version: str) -> Files:
    images, labels = np.stack([pixels(500 + row).transpose(1, 2, 0) for row in range(6)]), np.arange(6) % 3
    if version == "10.2":
        return {"cifar102_test.npz": packed(images=images, labels=labels)}
    return {f"cifar10.1_{version}_data.npy": npy(images), f"cifar10.1_{version}_labels.npy": npy(labels)}


def mnist_c() -> Files:
    files = {}
    for number, corruption in enumerate(["identity", *OF_DIGITS]):
        for part, rows in (("train", 4), ("test", 3)):
            digits = [pixels(100 * number + row + 50 * (part == "test"), (28, 28, 1)) for row in range(rows)]
            files[f"mnist_c/{corruption}/{part}_images.npy"] = npy(np.stack(digits))
            files[f"mnist_c/{corruption}/{part}_labels.npy"] = npy(np.arange(rows))
    return {"mnist_c.zip": zipped(files)}


def med_mnist(*shape: int, **rows: range) -> bytes:
    """Pictures and labels of each part; labels are columns of bytes."""
    arrays = {f"{part}_images": np.stack([pixels(row, shape) for row in own]) for part, own in rows.items()}
    labels = {f"{part}_labels": np.array([[row % 9] for row in own], np.uint8) for part, own in rows.items()}
    return packed(**arrays, **labels)


def path_mnist() -> Files:
    return {"pathmnist.npz": med_mnist(28, 28, 3, train=range(20), val=range(20, 25), test=range(25, 31))}


def pneumonia_mnist_c() -> Files:
    """Of each corruption one archive, with the severities end to end."""
    names = (
        find_source("pneumonia_mnist_c").definition.distributions[0].options["of"][-1]["options"]["only"]["corruption"]
    )
    worse = {
        f"pneumoniamnist/{name}.npz": med_mnist(4, 4, test=range(10 * n, 10 * n + 10)) for n, name in enumerate(names)
    }
    clean = med_mnist(4, 4, train=range(900, 906), val=range(906, 908), test=range(908, 910))
    return {"pneumoniamnist_224.npz": clean, "pneumoniamnist.zip": zipped(worse)}


def eurosat() -> Files:
    """Pictures in folders of classes, and lists of their names without folders, in JPEG or in TIFF."""
    names = [f"{cover}_{number}.jpg" for cover in ("AnnualCrop", "SeaLake") for number in range(1, 11)]
    files = {f"2750/{name.partition('_')[0]}/{name}": picture(number) for number, name in enumerate(names)}
    lists = {"train": names[:6] + names[10:16], "val": names[6:8] + names[16:18], "test": names[8:10] + names[18:]}
    listed = {f"eurosat-spatial-{part}.txt": lines(own) for part, own in lists.items()}
    listed["eurosat-spatial-test.txt"] = listed["eurosat-spatial-test.txt"].replace(b".jpg", b".tif")
    return {"EuroSAT.zip": zipped(files)} | listed


def squad(*questions, **passage: str) -> bytes:
    """Questions on one passage, each with the spans of its answer."""
    items = [
        {"id": n, "question": f"q{n}", "answers": [{"text": span} for span in own]} for n, own in enumerate(questions)
    ]
    return json.dumps({"data": [{"title": "t", "paragraphs": [{"qas": items, **passage}]}]}).encode()


def quoref() -> Files:
    train = {
        f"quoref-train-dev-v0.1/quoref-{part}-v0.1.json": squad(["a"], ["b", "c"], context=part)
        for part in ("train", "dev")
    }
    tests = {f"quoref_{name}_20191206_merged.json": name for name in ("original_subset", "test_perturbations")}
    changed = {name: squad(["Ann; Bo", "Cy"], context=own) for name, own in tests.items()}
    return {"quoref-train-dev-v0.1.zip": zipped(train)} | changed


def ropes() -> Files:
    train = {
        f"ropes-train-dev-v1.0/{part}-v1.0.json": squad(["more"], ["less"], background="b", situation=part)
        for part in ("train", "dev")
    }
    changed = {
        f"ropes_contrast_set{name}_032820.json": squad(["more"], background="b", situation=f"s{name}")
        for name in ("", "_original")
    }
    return {"ropes-train-dev-v1.0.tar.gz": tar(train)} | changed


def drop() -> Files:
    """A number, a date, spans, both, and an answer of others."""
    none = {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": []}
    kinds = [
        {"number": "7"},
        {"date": {"day": "11", "month": "June", "year": ""}},
        {"spans": ["x", "y"]},
        {"number": "2", "spans": ["p", "q"]},
    ]
    pairs = [{"query_id": f"{n}", "question": f"q{n}", "answer": none | kind} for n, kind in enumerate(kinds)]
    pairs[1]["validated_answers"] = [none | {"spans": ["June 11"]}, none, none | kinds[1]]
    parts = {
        f"drop_dataset/drop_dataset_{part}.json": {"s_1": {"passage": part, "qa_pairs": pairs}}
        for part in ("train", "dev")
    }
    changed = json.dumps({"s_1": {"passage": "p", "qa_pairs": pairs}}).encode()
    archive = zipped({name: json.dumps(content).encode() for name, content in parts.items()})
    return {"drop_dataset.zip": archive, "drop_contrast_sets_test.json": changed}


def snli_control() -> Files:
    """More than a thousand pairs of each relation, some without one, and the tests of Kaushik et al."""
    rows = [{"premise": f"p{n}", "hypothesis": f"h{n}", "label": n % 4 - 1} for n in range(4100)]
    names = {
        "original": ("train", "dev", "test"),
        "revised_premise": ("dev", "test"),
        "revised_hypothesis": ("dev", "test"),
    }
    tables = {
        f"{version}_{part}.tsv": csv("sentence1,sentence2,gold_label", [(version, part, "neutral")], "\t")
        for version, parts in names.items()
        for part in parts
    }
    pq.write_table(pa.Table.from_pylist(rows), buffer := io.BytesIO())
    return {"snli-train.parquet": buffer.getvalue()} | tables


def imagenet(*after: tuple[str, Files]) -> Files:
    """Two pictures of three classes to train on and two to validate on, and archives of what came after."""
    paths = [f"{part}/{synset}/{synset}_{n}.JPEG" for part in ("train", "val") for synset in SYNSETS for n in range(2)]
    archives = {
        name: zipped(files) if name.endswith("zip") else tar(files, mode="w:gz" if name.endswith("gz") else "w")
        for name, files in after
    }
    return {path: picture(number) for number, path in enumerate(paths)} | archives


def renewed(archive: str, root: str, synsets: list[str], rows: int = 2, readme: bool = True) -> Files:
    paths = [f"{root}/{synset}/{n}.jpg" for synset in synsets for n in range(rows)]
    files = {path: picture(500 + number) for number, path in enumerate(paths)}
    return imagenet((archive, files | ({f"{root}/README.txt": b"read me"} if readme else {})))


def numbered(name: str) -> Files:
    return imagenet((f"{name}.tar.gz", {f"{name}-format-val/{n}/{n}.jpeg": picture(600 + n) for n in (0, 2, 10)}))


def imagenet_c() -> Files:
    kinds = {
        "noise": "gaussian_noise",
        "blur": "glass_blur",
        "weather": "fog",
        "digital": "pixelate",
        "extra": "spatter",
    }
    archives = []
    for number, (name, kind) in enumerate(kinds.items()):
        paths = [f"{kind}/{severity}/{synset}/val_{severity}.JPEG" for severity in range(1, 6) for synset in SYNSETS]
        archives.append((f"{name}.tar", {path: picture(700 + 15 * number + n) for n, path in enumerate(paths)}))
    return imagenet(*archives)


def tiny_imagenet_c() -> Files:
    paths = [f"tiny-imagenet-200/train/{s}/images/{s}_{n}.JPEG" for s in SYNSETS for n in range(3)]
    train = {path: picture(number) for number, path in enumerate(paths)}
    train |= {f"tiny-imagenet-200/train/{s}/{s}_boxes.txt": b"x" for s in SYNSETS}
    train |= {"tiny-imagenet-200/val/images/val_0.JPEG": picture(99), "tiny-imagenet-200/wnids.txt": b"x"}
    paths = [f"Tiny-ImageNet-C/fog/{v}/{s}/test_{v}.JPEG" for s in SYNSETS for v in range(1, 6)]
    test = {path: picture(200 + number) for number, path in enumerate(paths)}
    return {"tiny-imagenet-200.zip": zipped(train), "Tiny-ImageNet-C.tar": tar(test, mode="w")}


# Texts, problems and commands.


def multinli() -> Files:
    labels = ["entailment", "neutral", "contradiction", "-"]
    files = {"multinli_1.0/README.txt": b"read me", "__MACOSX/multinli_1.0/._README.txt": b"x"}
    for name, genre, rows in (
        ("train", "fiction", 12),
        ("dev_matched", "fiction", 8),
        ("dev_mismatched", "letters", 8),
    ):
        files[f"multinli_1.0/multinli_1.0_{name}.jsonl"] = jsonl(
            {
                "annotator_labels": ["neutral"],
                "genre": genre,
                "gold_label": labels[number % (3 if name == "train" else 4)],
                "sentence1": f'He said "{name} {number}".',
                "sentence2": f"It is {number}.",
            }
            for number in range(rows)
        )
    return {"multinli_1.0.zip": zipped(files)}


def hans() -> Files:
    rows = [
        f'{("entailment", "non-entailment")[n % 2]}\t( x )\tThe "doctor" ran {n} .\tHe ran .\tex{n}\t'
        f"{('lexical_overlap', 'subsequence', 'constituent')[n % 3]}\tcase\ttemp{n}"
        for n in range(12)
    ]
    head = "gold_label\tsentence1_binary_parse\tsentence1\tsentence2\tpairID\theuristic\tsubcase\ttemplate"
    return multinli() | {"heuristics_evaluation_set.txt": lines([head, *rows])}


def anli() -> Files:
    return {
        "anli_v1.0.zip": zipped({
            f"anli_v1.0/R{number}/{part}.jsonl": jsonl(
                {"context": f"{number}, {part} {row}.", "hypothesis": f"It is {row}.", "label": "enc"[row % 3]}
                for row in range(rows)
            )
            for number in "123"
            for part, rows in (("train", 6), ("dev", 3), ("test", 3))
        })
    }  # fmt: skip


def paws() -> Files:
    def table(part: str) -> bytes:
        rows = [f'{n}\tThe "{part}" of {n}\tOf {n} the " {part}\t{n % 2}' for n in range(6)]
        return lines(["id\tsentence1\tsentence2\tlabel", *rows])

    final = {f"final/{part}.tsv": table(part) for part in ("train", "dev", "test")}
    swap = tar({"swap/train.tsv": table("swap")})
    return {"paws_wiki_labeled_swap.tar.gz": swap, "paws_wiki_labeled_final.tar.gz": tar(final)}


CFQ = ("mcd1", "mcd2", "mcd3", *(f"{kind}_split" for kind in (
    "question_complexity", "question_pattern", "query_complexity", "query_pattern", "random")))  # fmt: skip


def cfq(changed: dict[str, list[int]] | None = None) -> Files:
    rows, parts = [], {"trainIdxs": [], "devIdxs": [], "testIdxs": []}
    for item, other, entity in product(range(8), range(8), range(6)):
        far = (other - item) % 8
        parts["trainIdxs" if far < 4 else "testIdxs" if far > 4 else "devIdxs"].append(len(rows))
        rows.append(f"Did M{entity} w{item} w{other} M1")
    rows.append("Did M0 stay")
    dataset = [
        {"question": "x", "questionPatternModEntities": r, "sparqlPatternModEntities": f"SELECT {r}"} for r in rows
    ]
    files = {f"cfq/splits/{name}.json": json.dumps(changed or parts).encode() for name in CFQ}
    return {"cfq.tar.gz": tar(files | {"cfq/dataset.json": json.dumps(dataset).encode()})}


def clutrr(longest: int) -> Files:
    head = ",id,story,query,target,target_text,clean_story,proof_state,f_comb,task_name,genders,task_split\r\n"

    def table(part: str, lengths, marked: bool = False) -> bytes:
        rows = [
            f'{n},{part}{n},"[Ann], of {part} {n},\n came.","(\'Ann\', \'Bo{n}\')",{n % 21},x,x,"[]",a-b,'
            f"task_1.{length},a,{part}\r\n"
            for n, length in enumerate(lengths)
        ]
        return ("\ufeff" * marked + head + "".join(rows)).encode()

    known = list(range(2, longest + 1))
    train = {"train.csv": table("train", known * 3, True), "validation.csv": table("train", known[:1], True)}
    return train | {"test.csv": table("test", range(2, 11))}


def pcfg(name: str, train: list[str], test: list[str], targets: bytes = b"") -> Files:
    files = {}
    for part, texts in (("train", train), ("test", test)):
        files |= {f"{name}_{part}.src": lines(texts), f"{name}_{part}.tgt": lines(text.split()[-1] for text in texts)}
    return files | ({f"{name}_test.tgt": targets} if targets else {})


PRODUCTIVITY = [f"copy reverse A{n} B1" for n in range(8)], [f"copy echo swap_first_last C{n}" for n in range(4)]
PAIRS = [f"{item} A1 A2 , echo {n}" for item in ("swap_first_last", "repeat") for n in ("A1", "A2", "A3")]
SYSTEMATICITY = PAIRS, [f"swap_first_last repeat {n} , echo A1" for n in ("A1", "A2", "A3")]
SKILLS = ("visual", "visual_easier", "situational_1", "situational_2", "contextual", "adverb_1", "adverb_2")


def gscan(archive: str, parts, longer: str = "") -> Files:
    examples = {
        part: [
            {"command": f"walk,to,a,{part},{n}", "target_commands": ",".join(["walk"] * (4 if part == longer else 2)),
             "situation": {"n": n, "grid_size": 6}}
            for n in range(3)
        ]
        for part in ("train", "dev", "test", *parts)
    }  # fmt: skip
    content = json.dumps({"grid_size": 6, "examples": examples}).encode()
    return {f"{archive}.zip": zipped({f"{archive}/dataset.txt": content})}


def tweets() -> Files:
    files = {}
    for part in ("train", "val", "test"):
        files[f"sentiment/{part}_text.txt"] = lines(f"Tweet {n} of {part} \u2028 day " for n in range(6))
        files[f"sentiment/{part}_labels.txt"] = lines(n % 3 for n in range(6))
    return files


def math() -> Files:
    files = {}
    for part, subject, level in product(("train", "test"), ("algebra", "geometry"), range(6)):
        record = {"problem": f"{part} {subject} {level}?", "level": f"Level {level or '?'}", "type": subject.title()}
        record["solution"] = f"So $\\boxed{{{level}}}$."
        files[f"MATH/{part}/{subject}/{level}.json"] = json.dumps(record).encode()
    return {"MATH.tar": tar(files, mode="w")}


def gsm_plus() -> Files:
    def problems(part: str, rows: int) -> bytes:
        return jsonl({"question": f"{part} {n}?", "answer": f"It is <<1+1=2>>2.\n#### {n},000"} for n in range(rows))

    kinds = ("critical thinking", "numerical variation")
    plus = jsonl(
        {"question": f"perturbed {n}?", "solution": "So.", "answer": str(n) if n < 7 else "None",
         "perturbation_type": kinds[n % 2], "seed_question": "test 0?"}
        for n in range(8)
    )  # fmt: skip
    files = {"train.jsonl": problems("train", 6), "test.jsonl": problems("test", 3)}
    return files | {"example_model_solutions.jsonl": b"", "test-00000-of-00001.jsonl": plus}


def rated(file: str, field: str) -> Files:
    columns = {field: [f"{n} apples?" for n in range(40)], "answer": [f"so #### {n}" for n in range(40)]}
    columns |= {"rating_quantile": [n / 39 for n in range(40)], "rating": [float(n) for n in range(40)]}
    pq.write_table(pa.table(columns), buffer := io.BytesIO())
    return {file: buffer.getvalue()}


def dialogues() -> Files:
    def talk(n: int, reply: str) -> str:
        return f"\n\nHuman: {n}?\n\nAssistant: {reply} {n}"

    names = ("helpful-base/test", "helpful-rejection-sampled/test", "helpful-online/test", "harmless-base/test")
    rows = {"helpful-base/train": 12} | dict.fromkeys(names, 4)
    return {
        f"{name}.jsonl.gz": gz(jsonl({"chosen": talk(n, "good"), "rejected": talk(n, "bad")} for n in range(count)))
        for name, count in rows.items()
    }


# The ten sets of WILDS.

COUNTRIES = "angola benin burkina_faso cameroon cote_d_ivoire democratic_republic_of_congo ethiopia ghana guinea kenya"
COUNTRIES += " lesotho malawi mali mozambique nigeria rwanda senegal sierra_leone tanzania togo uganda zambia zimbabwe"
COUNTRIES = COUNTRIES.split()
POOR = {"options": {"shape": [2, 3, 3], "id_rows": 10}, "types": {"image": "float32[2,3,3]"}}
FOLD_A = {"angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda"}


def camelyon17() -> Files:
    files, rows = {}, []
    for number in range(30):
        centre = number % 5
        patient, node, x, y = f"{centre * 20 + 4:03d}", number % 2, 32 * number, 64
        name = f"patches/patient_{patient}_node_{node}/patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png"
        files[name] = picture(number)
        # The table's own split says 0 or 1 everywhere: of hospitals 1 and 2 it is not to be believed.
        rows.append((number, patient, node, x, y, number // 5 % 2, centre * 10, centre, number % 10 // 5))
    head = ",patient,node,x_coord,y_coord,tumor,slide,center,split"  # codespell:ignore center
    return files | {"metadata.csv": csv(head, rows)}


def iwildcam() -> Files:
    files, rows = {}, []
    for number, part in enumerate(["train", "val", "test", "id_val", "id_test"] * 4):
        position = {"val": 5, "test": 6}.get(part, number % 3)
        files[f"train/{number:03d}.jpg"] = picture(number)
        time = f"2013-05-{1 + number:02d} 12:00:00.000000"
        rows.append((part, f"{number:03d}.jpg", number % 2, position, number, time))
    return files | {"metadata.csv": csv("split,filename,y,location_remapped,sequence_remapped,datetime", rows)}


def fmow() -> Files:
    files, rows = {}, []
    for number in range(40):
        year = (2009, 2012, 2014, 2016, 2017)[number // 4 % 5]
        files[f"images/rgb_img_{number}.png"] = picture(number)
        original, country = ("train", "val", "test", "seq")[number % 4], ("FRA", "KEN", "XXX")[number % 3]
        rows.append((original, f"{year}-02-03T10:11:12Z", country, ("airport", "zoo")[number // 20]))
    files["rgb_metadata.csv"] = csv("split,timestamp,country_code,category", rows)
    return files | {"country_code_mapping.csv": csv("alpha-3,region", [("FRA", "Europe"), ("KEN", "Africa")])}


def poverty() -> Files:
    files = {f"images/landsat_poverty_img_{n}.npz": packed(x=np.full((2, 3, 3), n / 8, np.float32)) for n in range(69)}
    table = [(COUNTRIES[number % 23], number % 2 == 0, number / 100) for number in range(69)]
    return files | {"dhs_metadata.csv": csv("country,urban,wealthpooled", table)}


def rxrx1() -> Files:
    files, rows = {}, []
    for part, experiment in (("train", "HEPG2-01"), ("train", "U2OS-01"), ("val", "RPE-05"), ("test", "HUVEC-17")):
        for site, well in product((1, 2), ("B02", "B03", "C04")):
            files[f"images/{experiment}/Plate1/{well}_s{site}.png"] = picture(len(files))
            rows.append((part, experiment, 1, well, site, experiment.split("-")[0], len(rows) % 3))
    return files | {"metadata.csv": csv("dataset,experiment,plate,well,site,cell_type,sirna_id", rows)}


def globalwheat() -> Files:
    sessions = [("Arvalis_1", "France", "Gréoux", "Filling"), ("Arvalis_2", "France", "Gréoux", "Filling")]
    sessions += [("ETHZ_1", "Switzerland", "Eschikon", "Filling"), ("Usask_1", "Canada", "Saskatchewan", "Ripening")]
    files = {"metadata_domain.csv": csv("name,country,location,development_stage", sessions, ";")}
    tables = {"official_train": 0, "official_val": 12, "official_test": 46, "fixed_train_val": 0, "fixed_train_test": 1}
    for table, session in tables.items():
        boxes = ["1 2 5 9;3 3 4 4", "1 2 6 9;3 3 4 4", "no_box"]
        files |= {f"images/{table}{number}.png": picture(len(files) + number) for number in range(3)}
        rows = [(f"{table}{number}.png", boxes[number], session) for number in range(3)]
        files[f"{table}.csv"] = csv("image_name,BoxesString,domain", rows)
    return files


def civilcomments() -> Files:
    names = "male,female,LGBTQ,christian,muslim,other_religions,black,white"
    rows = []
    for number, part in enumerate(["train"] * 24 + ["val"] * 8 + ["test"] * 8):
        named = [0.0] * 7 + [0.49]
        if number % 8 < 6:
            named[(0, 0, 0, 0, 1, 4)[number % 8]] = 0.5 + number % 2 / 2
        rows.append((number, f'"He said ""no"", {number}"', [0.1, 0.5][number % 2], part, *named))
    return {"all_data_with_identities.csv": csv(f",comment_text,toxicity,split,{names}", rows)}


def amazon(codes=tuple([0, 0, 1, 2, 3, 4, -1] * 5)) -> Files:
    rows = []
    for number, code in enumerate([0, 0, 1, 2, 3, 4, -1] * 5):
        reviewer = {1: "V", 3: "T"}.get(code, "A") + str(number % 2)
        rows.append((f'"{reviewer}"', '"B1"', 1.0 + number % 5, f'"good, number {number}"', '"s"', '"Books"', 2014))
    reviews = csv("reviewerID,asin,overall,reviewText,summary,category,reviewYear", rows)
    return {"reviews.csv": reviews, "splits/user.csv": csv("split", [(code,) for code in codes])}


def py150() -> Files:
    known = [(0, "me/one"), (1, "me/two"), (2, "me/ood")]
    files = {"metadata/repo_file_names/repo_ids.csv": csv("id,repo_name", known)}
    for number, name in enumerate(("train", "IDval", "OODval", "IDtest", "OODtest")):
        repository = {"OODtest": "me/ood", "OODval": "me/two"}.get(name, "me/one")
        tokens = [[10 + number, 20 + row, 30, 40, 1] for row in range(3)]
        files[f"processed/{name}_input.json"] = json.dumps(tokens).encode()
        files[f"processed/{name}_input_tok_type.json"] = json.dumps([[6, 0, 1, 2, -100]] * 3).encode()
        files[f"metadata/repo_file_names/{name}.txt"] = lines(f"{repository}/src/{row}.py" for row in range(3))
    return files


def molecules() -> Files:
    rows = [(row % 2, "" if row % 3 == 0 else 1, 0.0, f"CID{row}", "C" * (row + 1)) for row in range(10)]
    files = {"pcba/mapping/mol.csv.gz": gz(csv("PCBA-1,PCBA-2,PCBA-3,mol_id,smiles", rows))}
    for part, places in (("train", range(6)), ("valid", (6, 7)), ("test", (8, 9))):
        files[f"pcba/split/scaffold/{part}.csv.gz"] = gz(lines(places))
    return {"pcba.zip": zipped(files), "scaffold_group.npy": npy(np.arange(10) // 2)}


class Case(NamedTuple):
    """A split's data; the rows of its parts; fields of parts, as sorted lists of values or as sets; changes of its twin."""

    files: Callable[[], Files]
    parts: dict[str, int]
    fields: dict[str, Any]
    changes: dict[str, Any] = {}  # noqa: RUF012


def held_out(train: int, id_val: int, id_test: int, ood_test: int, **more: int) -> dict[str, int]:
    return {"train": train, "id_val": id_val, "id_test": id_test, "ood_test": ood_test} | more


OFFICIAL = {"train": 3, "id_val": 3, "id_test": 3, "ood_val": 3, "ood_test": 3}
HUMAN = {"train": 50, "id_test": 10}
SETS = ["Caltech101", "LabelMe", "SUN09", "VOC2007"]
CARS = ["aclass", "escape", "hilux", "i3", "lexus", "tesla", "tiguan", "tucson", "x5", "zoe"]
HOME = {"ImageInfo.csv": b"x", "imagelist.txt": b"y"}
HOMES = ["Art", "Clipart", "Product", "Real World"]
LOCATIONS = [f"location_{number}" for number in (38, 43, 46, 100)]

CASES = {
    "cifar10/human_worst": Case(cifar10, HUMAN, {}),
    "cifar100/human": Case(cifar100, HUMAN, {}),
    "clothing1m/noisy": Case(
        clothing, {"train": 12, "ood_val": 4, "ood_test": 6},
        {"train.clothing": [0] * 6 + [1] * 6, "ood_test.clothing": [0, 0, 1, 1, 2, 2]},
    ),
    "food101n/curated": Case(food, {"train": 12, "ood_test": 4}, {"ood_test.food": [0, 0, 1, 1]}),
    "metashift/contexts": Case(
        metashift, {"train": 12, "ood_test": 6},
        {"ood_test.animal": [0, 0, 0, 1, 1, 1], "ood_test.context": {"shelf"}},
    ),
    "nico/autumn_rock": Case(nico, held_out(32, 4, 4, 20), {"ood_test.context": {"autumn", "rock"}}),
    "acs_income_states/california": Case(
        census_states, held_out(8, 1, 1, 50),
        {"ood_test.state": {"tx", "ny", "fl", "sd", "pr"}, "ood_test.rich": [0] * 20 + [1] * 30},
    ),
    "acs_income_divisions/new_england": Case(
        lambda: census("acs_income_divisions", INCOME, list_earners), held_out(148, 18, 18, 20),
        {"ood_test.rich": [0] * 10 + [1] * 10, "ood_test.eng": [0.0] * 5 + [1.0] * 15},
    ),
    "acs_unemployment/no_diploma": Case(
        lambda: census("acs_unemployment", UNEMPLOYED, list_unemployed), held_out(82, 10, 10, 153),
        {"ood_test.unemployed": [1] * 153, "train.schooling": {"diploma"}},
    ),
    "acs_income_years/from_2014": Case(
        census_years, {"train": 6, "id_test": 2, "ood_test": 32},
        {"ood_test.year": {2015, 2016, 2017, 2018}, "ood_test.rich": [0] * 12 + [1] * 20},
        {"parameters": {"id_test": 2}},
    ),
    "vlcs/labelme": Case(
        lambda: folders(SETS, ["bird", "car", "chair", "dog", "person"]), held_out(24, 3, 3, 10),
        {"ood_test.domain": {"LabelMe"}, "ood_test.category": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]},
    ),
    "office_home/real_world": Case(
        lambda: {"office_home.zip": zipped({f"OfficeHomeDataset_10072016/{name}": content for name, content in (
            folders(HOMES, [f"Thing_{number}" for number in range(5)]) | HOME).items()})},
        held_out(24, 3, 3, 10), {"ood_test.domain": {"Real World"}, "train.category": {0, 1, 2, 3, 4}},
    ),
    "terra_incognita/location_100": Case(
        traps, held_out(18, 3, 3, 8),
        {"ood_test.domain": {"location_100"}, "train.domain": {"location_38", "location_43", "location_46"}},
    ),
    "terra_incognita/location_46": Case(
        lambda: folders(LOCATIONS, CATEGORIES), held_out(24, 3, 3, 10), {"ood_test.category": [*range(10)]},
        {"distribution": 1},
    ),
    "domain_net/sketch": Case(
        domain_net, held_out(40, 5, 5, 10), {"ood_test.domain": {"sketch"}, "ood_test.category": [0] * 5 + [1] * 5},
    ),
    "sviro/tesla": Case(
        lambda: {"sviro.zip": zipped(folders(CARS, ["0", "1", "2"], head="SVIRO_DOMAINBED/"))}, held_out(72, 9, 9, 10),
        {"ood_test.domain": {"tesla"}},
    ),
    "animal10n/confused": Case(animals, {"train": 30, "ood_test": 10}, {"ood_test.animal": [*range(10)]}),
    "webvision_mini/checked": Case(
        webvision, {"train": 6, "ood_test": 4}, {"train.category": [0, 0, 0, 25, 25, 25]},
    ),
    "objectnet/odd_places": Case(
        objectnet, {"train": 12, "id_test": 12, "ood_test": 6},
        {"train.thing": [0] * 8 + [1] * 4, "train.folder": set(THINGS[1:]), "ood_test.thing": [0] * 3 + [1] * 3,
         "ood_test.folder": {"alarm_clock", "tie"}},
    ),
    "waterbirds/official": Case(
        waterbirds, {"train": 24, "ood_val": 8, "ood_test": 8},
        {"ood_test.cell": sorted(["land/land", "land/water", "water/land", "water/water"] * 2),
         "train.cell": {"land/land", "water/water"}, "ood_test.species": {"001.Some_Bird", "002.Some_Bird"}},
    ),
    "celeba/blond": Case(
        celeba, {"train": 12, "ood_val": 6, "ood_test": 6},
        {"train.cell": ["0/0"] * 3 + ["0/1"] * 5 + ["1/0"] * 3 + ["1/1"],
         "ood_test.picture": [f"{number:06d}.jpg" for number in range(19, 25)]},
    ),
    "cifar10_c/common": Case(
        lambda: cifar("cifar-10", *[4] * 6) | corrupted("CIFAR-10-C"),
        {"train": 20, "id_test": 4, "ood_test": 300, "ood_val": 80},
        {"ood_test.corruption": set(FIFTEEN), "ood_val.corruption": set(FOUR),
         "ood_test.strength": sorted([1, 2, 3, 4, 5] * 60)},
    ),
    "cifar100_c/common": Case(
        lambda: cifar("cifar-100", 4, 4) | corrupted("CIFAR-100-C"),
        {"train": 4, "id_test": 4, "ood_test": 300, "ood_val": 80}, {"ood_test.corruption": set(FIFTEEN)},
    ),
    "cifar10_1_v4/recollected": Case(
        lambda: cifar("cifar-10", *[4] * 6) | recollected("v4"), {"train": 20, "id_test": 4, "ood_test": 6},
        {"ood_test.object": [0, 0, 1, 1, 2, 2]},
    ),
    "cifar10_1_v6/recollected": Case(
        lambda: cifar("cifar-10", *[4] * 6) | recollected("v6"), {"train": 20, "id_test": 4, "ood_test": 6}, {},
    ),
    "cifar10_2/recollected": Case(
        lambda: cifar("cifar-10", *[4] * 6) | recollected("10.2"), {"train": 20, "id_test": 4, "ood_test": 6}, {},
    ),
    "mnist_c/common": Case(
        mnist_c, {"train": 4, "id_test": 3, "ood_test": 45}, {"ood_test.corruption": set(OF_DIGITS)},
    ),
    "quoref_contrast/contrast": Case(
        quoref, {"train": 2, "id_test": 1, "ood_test": 1},
        {"train.answer": ["a", "b; c"], "ood_test.answer": ["Ann Bo; Cy"], "ood_test.passage": ["test_perturbations"]},
    ),
    "ropes_contrast/contrast": Case(
        ropes, {"train": 2, "id_test": 1, "ood_test": 1},
        {"train.passage": ["b\n\ntrain"] * 2, "id_test.passage": ["b\n\ns_original"], "ood_test.passage": ["b\n\ns"]},
    ),
    "drop_contrast/contrast": Case(
        drop, {"train": 4, "id_test": 4, "ood_test": 4},
        {"ood_test.answer": ["11 June | June 11", "2", "7", "x; y"], "id_test.passage": ["dev"] * 4},
    ),
    "snli_control/revised_premise": Case(
        snli_control, {"train": 3001, "id_val": 1, "id_test": 1, "ood_val": 1, "ood_test": 1},
        {"train.relation": [0] * 1000 + [1] * 1001 + [2] * 1000, "ood_test.premise": ["revised_premise"]},
    ),
    "path_mnist/centre": Case(
        path_mnist, {"train": 20, "id_val": 5, "ood_test": 6}, {"ood_test.tissue": [0, 1, 2, 3, 7, 8]},
    ),
    "pneumonia_mnist_c/common": Case(
        pneumonia_mnist_c, {"train": 6, "id_val": 2, "id_test": 2, "ood_test": 130},
        {"ood_test.strength": sorted(26 * [1, 2, 3, 4, 5]), "train.corruption": {"clean"}},
        {"types": {"image": "uint8[4,4]"}},
    ),
    "eurosat/longitude": Case(
        eurosat, {"train": 12, "ood_val": 4, "ood_test": 4}, {"ood_test.cover": [0, 0, 9, 9], "train.cover": {0, 9}},
    ),
    "imagenet_a/adversarial": Case(
        lambda: renewed("imagenet-a.tar", "imagenet-a", SYNSETS[:2]), {"train": 6, "id_test": 6, "ood_test": 4},
        {"ood_test.synset": set(SYNSETS[:2]), "ood_test.category": {0, 1}},
    ),
    "imagenet_r/renditions": Case(
        lambda: renewed("imagenet-r.tar", "imagenet-r", SYNSETS[1:]), {"train": 6, "id_test": 6, "ood_test": 4},
        {"ood_test.synset": set(SYNSETS[1:]), "ood_test.category": {1, 2}},
    ),
    "imagenet_sketch/sketches": Case(
        lambda: renewed("ImageNet-Sketch.zip", "sketch", SYNSETS, readme=False),
        {"train": 6, "id_test": 6, "ood_test": 6}, {"ood_test.category": {0, 1, 2}},
    ),
    "imagenet_v2_matched_frequency/recollected": Case(
        lambda: numbered("imagenetv2-matched-frequency"), {"train": 6, "id_test": 6, "ood_test": 3},
        {"ood_test.category": [0, 2, 10]},
    ),
    "imagenet_v2_threshold/recollected": Case(
        lambda: numbered("imagenetv2-threshold0.7"), {"train": 6, "id_test": 6, "ood_test": 3},
        {"ood_test.category": [0, 2, 10]},
    ),
    "imagenet_v2_top_images/recollected": Case(
        lambda: numbered("imagenetv2-top-images"), {"train": 6, "id_test": 6, "ood_test": 3},
        {"ood_test.category": [0, 2, 10]},
    ),
    "imagenet_c/common": Case(
        imagenet_c, {"train": 6, "id_test": 6, "ood_test": 60, "ood_val": 15},
        {"ood_val.corruption": {"spatter"}, "ood_test.strength": {"1", "2", "3", "4", "5"}},
    ),
    "tiny_imagenet_c/common": Case(
        tiny_imagenet_c, {"train": 9, "ood_test": 15}, {"ood_test.category": [0] * 5 + [1] * 5 + [2] * 5},
    ),
    "multinli/mismatched": Case(
        multinli, {"train": 12, "id_test": 6, "ood_test": 6},
        {"ood_test.relation": [0, 0, 1, 1, 2, 2], "ood_test.genre": {"letters"}},
    ),
    "hans/heuristics": Case(
        hans, {"train": 12, "id_test": 6, "ood_test": 12},
        {"ood_test.follows": [0] * 6 + [1] * 6, "train.follows": [0] * 4 + [1] * 8,
         "ood_test.heuristic": {"lexical_overlap", "subsequence", "constituent"}},
    ),
    "anli/last_round": Case(
        anli, {"train": 12, "id_val": 6, "id_test": 6, "ood_val": 3, "ood_test": 3}, {"ood_test.relation": [0, 1, 2]},
    ),
    "paws_wiki/swapped": Case(
        paws, {"train": 6, "ood_val": 6, "ood_test": 6}, {"ood_test.first": [f'The "test" of {n}' for n in range(6)]},
    ),
    "cfq/mcd1": Case(cfq, {"train": 192, "ood_val": 48, "ood_test": 144}, {"why": "unseen pair"}),
    "clutrr_23/longer": Case(
        lambda: clutrr(3), held_out(6, 1, 2, 7),
        {"ood_test.length": [*range(4, 11)], "why": "training reaches severity",
         "ood_test.query": [f"('Ann', 'Bo{n}')" for n in range(2, 9)]},
    ),
    "clutrr_234/longer": Case(lambda: clutrr(4), held_out(9, 1, 3, 6), {"ood_test.length": [*range(5, 11)]}),
    "pcfg_productivity/official": Case(
        lambda: pcfg("productivity", *PRODUCTIVITY), {"train": 8, "ood_test": 4},
        {"train.functions": {2}, "ood_test.functions": {3}},
    ),
    "pcfg_systematicity/official": Case(
        lambda: pcfg("systematicity", *SYSTEMATICITY), {"train": 6, "ood_test": 3},
        {"why": "0 of 1 groups of ood_test are in training"},
    ),
    "gscan/visual": Case(
        lambda: gscan("compositional_splits", [*SKILLS, "other"]), held_out(3, 3, 3, 3),
        {"ood_test.command": [f"walk to a visual {n}" for n in range(3)],
         "train.situation": [f'{{"grid_size":6,"n":{n}}}' for n in range(3)]},
    ),
    "gscan_length/official": Case(
        lambda: gscan("target_length_split", ["target_lengths"], "target_lengths"), held_out(3, 3, 3, 3),
        {"ood_test.actions": ["walk walk walk walk"] * 3, "ood_test.length": [4] * 3},
    ),
    "tweeteval_sentiment/later": Case(
        tweets, {"train": 6, "id_test": 6, "ood_test": 6},
        {"ood_test.sentiment": [0, 0, 1, 1, 2, 2], "ood_test.text": [f"Tweet {n} of test \u2028 day" for n in range(6)]},
    ),
    "math_levels/three_to_five": Case(
        math, {"train": 6, "id_test": 6, "ood_test": 4}, {"ood_test.answer": ["4", "4", "5", "5"]},
    ),
    "gsm_plus/perturbed": Case(
        gsm_plus, {"train": 6, "id_test": 3, "ood_test": 8},
        {"id_test.answer": ["0000", "1000", "2000"],
         "ood_test.perturbation": {"critical thinking", "numerical variation"}},
    ),
    "easy2hard_gsm8k/easier_half": Case(
        lambda: rated("E2H-GSM8K-eval.parquet", "question"), {"train": 15, "id_test": 5, "ood_test": 20},
        {"ood_test.rating_quantile": pytest.approx([n / 39 for n in range(20, 40)])}, {"parameters": {"id_test": 5}},
    ),
    "easy2hard_amc/easier_half": Case(
        lambda: rated("E2H-AMC-eval.parquet", "problem"), {"train": 15, "id_test": 5, "ood_test": 20}, {},
        {"parameters": {"id_test": 5}},
    ),
    "hh_rlhf/harmless": Case(dialogues, {"train": 12, "id_test": 4, "ood_val": 4, "ood_test": 4}, {}),
    "hh_rlhf/online": Case(dialogues, {"train": 12, "id_test": 4, "ood_val": 4, "ood_test": 4}, {}),
    "wilds_camelyon17/official": Case(
        camelyon17, {"train": 9, "id_val": 9, "ood_val": 6, "ood_test": 6},
        {"ood_val.hospital": {"1"}, "ood_test.hospital": {"2"}, "train.hospital": {"0", "3", "4"},
         "ood_test.tumour": [0, 0, 0, 1, 1, 1]},
    ),
    "wilds_iwildcam/official": Case(iwildcam, dict.fromkeys(OFFICIAL, 4), {"ood_test.location": {"6"}}),
    "wilds_fmow/official": Case(
        fmow, {"train": 4, "id_val": 4, "id_test": 4, "ood_val": 2, "ood_test": 4},
        {"train.year": {"2009", "2012"}, "ood_val.year": {"2014"}, "ood_test.year": {"2016", "2017"},
         "ood_test.use": {0, 61}, "train.region": {"Africa", "Europe", "Other"}},
    ),
    "wilds_poverty/official": Case(
        poverty, {"train": 29, "id_val": 5, "id_test": 5, "ood_val": 15, "ood_test": 15},
        {"ood_test.country": FOLD_A, "train.urban": {"rural", "urban"}}, POOR,
    ),
    "wilds_rxrx1/official": Case(
        rxrx1, {"train": 6, "id_test": 6, "ood_val": 6, "ood_test": 6},
        {"id_test.site": {"2"}, "train.batch": {"HEPG2-01", "U2OS-01"}},
    ),
    "wilds_globalwheat/official": Case(
        globalwheat, OFFICIAL,
        {"ood_test.boxes": ["", "1 2 5 9;3 3 4 4", "1 2 6 9;3 3 4 4"], "ood_test.session": {"Usask_1"},
         "ood_val.country": {"Switzerland"}},
    ),
    "wilds_civilcomments/official": Case(
        civilcomments, {"train": 24, "ood_val": 8, "ood_test": 8},
        {"ood_test.toxic": [0] * 4 + [1] * 4, "ood_test.male": [0] * 4 + [1] * 4, "train.white": {0},
         "ood_test.identity": ["female"] + ["male"] * 4 + ["muslim"] + ["none"] * 2,
         "ood_test.comment": [f'He said "no", {number}' for number in range(32, 40)]},
    ),
    "wilds_amazon/official": Case(
        amazon, {"train": 10, "id_val": 5, "id_test": 5, "ood_val": 5, "ood_test": 5},
        {"ood_test.reviewer": {"T0", "T1"}, "ood_test.stars": [0, 1, 2, 3, 4]},
    ),
    "wilds_py150/official": Case(
        py150, OFFICIAL,
        {"ood_test.code": ["14 20 30", "14 21 30", "14 22 30"], "ood_test.types": {"class method punctuation"},
         "ood_test.next_token": ["20 30 40", "21 30 40", "22 30 40"], "ood_test.repository": {"me/ood"}},
    ),
    "wilds_molpcba/official": Case(
        molecules, {"train": 6, "ood_val": 2, "ood_test": 2}, {"ood_test.scaffold": {"4"}},
        {"options": {"tasks": 3}, "types": {"assays": "float32[3]"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_definition_is_pulled_into_its_published_parts(place, tmp_path, name):
    case = CASES[name]
    split, parts = pulled(twin(name, place, **case.changes), laid(tmp_path / "data", case.files()))
    assert parts == case.parts
    for key, expected in case.fields.items():
        if key == "why":
            assert expected in split.manifest.audit()["why"]
        else:
            found = values(split, *key.split("."))
            assert (set(found) if isinstance(expected, set) else found) == expected, key


REFUSED = {
    "a label of an image is not there": (
        "clothing1m/noisy", lambda: clothing() | {"noisy_label_kv.txt": b"images/0/00/0,0.jpg 1\n"},
        "not in the form of clothing1m: 'images/1/01/1,1.jpg'",
    ),
    "a column of a census file is not there": (
        "acs_income_years/from_2014",
        lambda: census_years() | {"2016_csv_pca.zip": zipped({"ss16pca.csv": csv("RT,AGEP,PINCP", [("P", 30, 50000)])})},
        "ss16pca.csv",
    ),
    "a class is not known": ("vlcs/labelme", lambda: folders(SETS, ["bird", "zebra"]), "zebra"),
    "a picture is listed and not there": (
        "webvision_mini/checked", lambda: webvision("google/q0001/p1.jpg"), "not in the form of webvision: 'q0001/p1.jpg'",
    ),
    "ImageNet has too few classes": (
        "objectnet/odd_places",
        lambda: {name: content for name, content in objectnet().items() if THINGS[3] not in name},
        "not in the form of objectnet",
    ),
    "a list lacks a face": (
        "celeba/blond", lambda: celeba() | {"list_eval_partition.txt": b"000001.jpg 0\n"},
        r"list_attr_celeba.txt, line 4: published \(column 'part 1'\) is missing",
    ),
    "a corruption is not there": (
        "cifar10_c/common", lambda: cifar("cifar-10", *[4] * 6) | corrupted("CIFAR-10-C", without="frost"), "frost",
    ),
    "a split has places that no question has": (
        "cfq/mcd1", lambda: cfq({"trainIdxs": [0, 700]}), "not in the form of cfq: index 700",
    ),
    "lines are not parallel": (
        "pcfg_systematicity/official", lambda: pcfg("systematicity", *SYSTEMATICITY, targets=b"one\n"),
        "not in the form of parallel_lines",
    ),
    "a split has another length than the reviews": (
        "wilds_amazon/official", lambda: amazon((0, 3)),
        r"reviews.csv, line 4: published \(column 'part split'\) is missing",
    ),
    "a picture has no bytes": (
        "wilds_camelyon17/official", lambda: camelyon17() | {sorted(camelyon17())[1]: b""}, "has no bytes",
    ),
    "a picture is not there": (
        "wilds_camelyon17/official", lambda: dict(list(camelyon17().items())[1:]),
        r"has no file patches/patient_004_node_0/.* \(1 of 30 are missing\)",
    ),
    "a table has other columns": (
        "wilds_camelyon17/official", lambda: camelyon17() | {"metadata.csv": b"patient,node\n1,2\n"},
        r"metadata.csv has no column 'tumor'",
    ),
    "a table is not there": (
        "wilds_camelyon17/official", lambda: {"readme/a.txt": b"x", "b.txt": b"y"},
        r"no file metadata.csv: the files are b.txt, readme/a.txt",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_data_that_are_not_as_published_are_refused_and_nothing_is_frozen(place, tmp_path, what):
    name, files, complaint = REFUSED[what]
    changes = CASES[name].changes if name in CASES else {}
    with pytest.raises((BadData, FarshiftError), match=complaint):
        pulled(twin(name, place, **changes), laid(tmp_path / "data", files()))
    assert not list((tmp_path / "home").rglob("*.toml"))


def test_labels_of_people_are_corrupted_and_annotators_may_stand_apart(place, tmp_path):
    for name, files in (("cifar10/human_worst", cifar10()), ("cifar100/human", cifar100())):
        split, _ = pulled(twin(name, place), laid(tmp_path / name, files))
        assert split.part("train").corrupted.sum() == 10
    _, parts = pulled(twin("cifar100/annotators_apart", place), tmp_path / "cifar100/human")
    assert parts["train"] == 40


def test_a_corruption_s_severities_are_end_to_end(place, tmp_path):
    split, _ = pulled(twin("cifar10_c/common", place), laid(tmp_path / "data", CASES["cifar10_c/common"].files()))
    rows = split.part("ood_test").numpy(["image", "corruption", "strength", "object"])
    worst = (rows["corruption"] == "shot_noise") & (rows["strength"] == 5) & (rows["object"] == 2)
    assert (rows["image"][worst].reshape(3, 32, 32) == pixels(1000 + 100 + 18)).all()


def test_listed_duplicates_of_domain_net_are_left_out(place, tmp_path):
    laid(tmp_path / "data", domain_net())
    split = twin("domain_net/sketch@2", place)
    with pytest.raises(Unavailable, match="domain_net_duplicates.txt is not available"):
        pulled(split, tmp_path / "data")
    listed = sorted(name for name in folders(DOMAINS, ["aircraft_carrier", "zigzag"]) if name.startswith("sketch/"))[:3]
    laid(tmp_path / "data", {"domain_net_duplicates.txt": lines([*listed, "real/zigzag/absent.jpg", ""])})
    _, parts = pulled(split, tmp_path / "data")
    assert parts == held_out(40, 5, 5, 7)


@pytest.mark.parametrize(
    ("split", "archive"), [("imagenet_a/adversarial@2", "imagenet-a"), ("imagenet_r/renditions@2", "imagenet-r")]
)
def test_both_tests_have_the_classes_of_the_published_protocol(place, tmp_path, split, archive):
    source = find_source(find_manifest(split).definition.source.name)
    assert len(set(source.definition.distributions[0].options["where"]["synset"])) == 200
    data = laid(tmp_path / "data", renewed(f"{archive}.tar", archive, SYNSETS[1:], rows=1, readme=False))
    result, parts = pulled(twin(split, place, options={"where": {"synset": SYNSETS[1:]}}), data)
    assert parts == {"train": 4, "id_test": 4, "ood_test": 2}
    assert all(set(values(result, part, "category")) == {0, 1} for part in parts)


def test_the_csv_form_of_wilds_gives_the_same_faces(place, tmp_path):
    first, _ = pulled(twin("celeba/blond", place), laid(tmp_path / "data", celeba()))
    for path in (tmp_path / "home").rglob("*.toml"):
        path.unlink()
    data = laid(tmp_path / "data2/celebA_v1.0", celeba_of_wilds())
    second, _ = pulled(twin("celeba/blond", place, distribution=1), data)
    assert second.source.definition.digest == first.source.definition.digest


@pytest.mark.parametrize("head", ["", "./", "camelyon17_v1.0/"])
def test_an_archive_is_read_as_a_folder_is(place, tmp_path, head):
    name = twin("wilds_camelyon17/official", place)
    packed, _ = pulled(name, laid(tmp_path / "data", {"archive.tar.gz": tar(camelyon17(), head)}))
    for path in (tmp_path / "home").rglob("*.toml"):
        path.unlink()
    unpacked, _ = pulled(name, laid(tmp_path / "data2/camelyon17_v1.0", camelyon17()))
    assert unpacked.source.definition.digest == packed.source.definition.digest


def test_poverty_repeats_the_published_draw_and_every_fold_tests_other_countries(place, tmp_path):
    data, tested = laid(tmp_path / "data/poverty_v1.1", poverty()), []
    for fold in ("official", "fold_b", "fold_c", "fold_d", "fold_e"):
        split, _ = pulled(twin(f"wilds_poverty/{fold}", place, **POOR), data)
        tested += sorted(set(values(split, "ood_test", "country")))
        if fold == "official":
            # As WILDS draws: NumPy's generator of the letter and a constant, over the places of the fold's own rows.
            locked = FOLD_A | {"benin", "burkina_faso", "guinea", "sierra_leone", "tanzania"}
            known = np.array([row for row in range(69) if COUNTRIES[row % 23] not in locked])
            np.random.default_rng(ord("A") + 541433).shuffle(known)
            assert np.allclose(values(split, "id_val", "wealth"), sorted(known[:5] / 100))
            assert np.allclose(values(split, "id_test", "wealth"), sorted(known[5:10] / 100))
    assert sorted(tested) == COUNTRIES


def test_molecules_have_an_assay_that_is_not_known_as_nan(place, tmp_path):
    case = CASES["wilds_molpcba/official"]
    split, _ = pulled(twin("wilds_molpcba/official", place, **case.changes), laid(tmp_path / "data", molecules()))
    assert np.isnan(split.part("ood_test").numpy(["assays"])["assays"][:, 1]).sum() == 1


def test_an_archive_comes_over_http_and_is_pulled_without_data_of_ones_own(place, farshift_json):
    with web(birds=tar(waterbirds(), "waterbird_complete95_forest2water2/")) as site:
        mirror = {"sort": "https", "url": f"{site.url}/birds"}
        name = twin("waterbirds/official", place, mirrors={"waterbird_complete95_forest2water2": [mirror]})
        (done,) = farshift_json("splits", "pull", name)
    assert done["parts"] == {"train": 24, "ood_val": 8, "ood_test": 8}


def test_an_archive_comes_from_the_authors_place_on_the_hub(place, tmp_path):
    """In a process of its own, since the client reads where the Hub is when it is imported."""
    mirror = {"sort": "hub", "repo": REPOSITORY, "revision": "main", "file": "*.tar.gz"}
    name = twin("wilds_civilcomments/official", place, mirrors={"civilcomments_v1.0": [mirror]})
    with hub_serving() as hub:

        def pull():
            command = [sys.executable, "-m", "farshift", "splits", "pull", name]
            where = environment(hub, tmp_path / "hub")
            return subprocess.run(command, capture_output=True, text=True, env=where, timeout=120, check=False)

        hub.commit({"README.md": b"x", "a.tar.gz": b"1", "b.tar.gz": b"2"})
        assert "2 files match *.tar.gz instead of one" in " ".join(pull().stderr.split())
        hub.commit({"README.md": b"x", "civilcomments_v1.0.tar.gz": tar(civilcomments())})
        done = pull()
        assert done.returncode == 0, done.stderr
    assert len(load(name, part="train")) == 24


def ones(batch):
    return np.ones(len(next(iter(batch.values()))), np.int64)


def copied(batch):
    return [" ".join(["20", *code.split()[1:]]) for code in batch["code"]]


@pytest.mark.parametrize(
    ("name", "model", "holdout", "metric", "value"),
    [
        ("waterbirds/official", ones, {}, "worst_group_accuracy@1", 0.0),
        # Identities overlap.
        ("wilds_civilcomments/official", ones, {"to": "id_test", "share": 0.5}, "worst_group_accuracy@1", 0.0),
        ("multinli/mismatched", ones, {"to": "id_val", "share": 0.25}, "accuracy@1", pytest.approx(1 / 3)),
        ("wilds_py150/official", copied, {}, "token_type_accuracy@1", pytest.approx(1 / 2, abs=1 / 2)),
    ],
)
def test_a_model_is_scored_by_the_metric_that_the_field_uses(place, tmp_path, name, model, holdout, metric, value):
    own = twin(name, place)
    pulled(own, laid(tmp_path / "data", CASES[name].files()))
    changes = {"holdouts": [{"part": "train", **holdout}]} if holdout else {}
    run = evaluate(model, on=measured(name, own, place, **changes), budget="quick", seeds=1, out=tmp_path / "run")
    result = score(run)
    assert (result.metric, result.ood.value) == (metric, value)
    if name == "waterbirds/official":
        assert result.metrics["accuracy@1"].ood.value == 0.5
