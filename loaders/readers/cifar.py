"""CIFAR-10 and CIFAR-100, as arrays and as a folder of images, with human labels.

Human labels are a pickle, and unpickling can run arbitrary code. Here `pickletools` lists the instructions, and none is
executed: an array is the long string (latin-1, as protocol 2 writes bytes) that follows its name.
"""

from __future__ import annotations

import csv
import pickletools
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.documents import read_json
from ...core.errors import BadData
from ..acquire.archive_files import ArchiveFiles

PUBLISHED_FORM = True

_PIXELS = 3 * 32 * 32
NOBODY = -1
"""The human label of images that were not annotated."""


def read(
    files: dict[str, Path],
    *,
    archive: str,
    labels: list[str],
    train: list[str],
    test: list[str],
    true: str = "",
    human: str = "",
    given: dict[str, str] | None = None,
    workers: str = "",
) -> pa.Table:
    """CIFAR-10 and CIFAR-100 as published (binary or Python version), with the human labels of CIFAR-N next to the true
    labels.

    Fields: `image` (uint8, 3 x 32 x 32), a whole number for each of `labels` (the label bytes before each image), the
    text `published` (train or test), for each column of `given` the human label (its array in the file `human`), and,
    if the file `workers` is given, the text `worker`: who gave the label.

    `train` and `test` are members of `archive`, in the order of the human labels. The array `clean_label` must equal
    the column `true`; otherwise the labels belong to other images (`BadData`). Without `human` there are no human
    labels.
    """
    parts = [_read_records(files[archive], members, len(labels) + _PIXELS) for members in (train, test)]
    records = np.concatenate(parts)
    count, rest = len(parts[0]), len(parts[1])
    flat = pa.array(np.ascontiguousarray(records[:, len(labels) :]).ravel())
    columns: dict[str, pa.Array | NDArray[np.int64]] = {"image": pa.FixedSizeListArray.from_arrays(flat, _PIXELS)}
    for index, name in enumerate(labels):
        columns[name] = records[:, index].astype(np.int64)
    columns["published"] = pa.array(["train"] * count + ["test"] * rest)
    if not human:
        return pa.table(columns)
    given = given or {}
    arrays = read_pickled_integers(files[human], [*given.values(), "clean_label"], count)
    unequal = np.flatnonzero(arrays["clean_label"] != columns[true][:count])
    if len(unequal):
        raise BadData(f"{human} is in another order than {archive}: {len(unequal)} of {count} true labels differ")
    for name, array in given.items():
        columns[name] = np.concatenate([arrays[array], np.full(rest, NOBODY)])
    if workers:
        columns["worker"] = pa.array([*_read_workers(files[workers], count), *[""] * rest])
    return pa.table(columns)


def _read_records(archive: Path, members: list[str], width: int) -> NDArray[np.uint8]:
    """Read the records of the members: label bytes, then pixels; shape (rows, width)."""
    with tarfile.open(archive) as tape:
        files = [tape.extractfile(member) for member in members]
        contents = [np.frombuffer(file.read(), np.uint8).reshape(-1, width) for file in files if file]
    return np.concatenate(contents)


def _read_workers(path: Path, rows: int) -> list[str]:
    """Read who labelled each training image, from lines such as `5--9,239,41` (images 5 to 9, worker 239, 41 s)."""
    who = [""] * rows
    with path.open(newline="", encoding="utf-8") as file:
        for span, worker, *_ in list(csv.reader(file))[1:]:
            first, last = map(int, span.split("--"))
            who[first : last + 1] = [worker] * (last + 1 - first)
    return who


CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_PIECE = 4096
"""Rows per piece."""


def pictures(
    files: dict[str, Any], *, pictures: str, human: str, given: dict[str, str], test: str, crowd: str, errors: str
) -> Iterator[pa.Table]:
    """CIFAR-10 as a folder of images, `part/class/number.jpg`, joined with human labels.

    The published human labels follow the order of the published arrays. The k-th image of a class, by file name, is the
    k-th image of that class in the arrays, which is found by the true labels.

    Fields: `image`, `object` (0 to 9), `published` (train or test) and `number` (the index in the published arrays),
    for each image of the tree `pictures`.

    Training images have a label from the arrays of CIFAR-10N (`human`) for each field of `given`. Test images, in the
    order of the true labels `test`, have `disagreement`, the share of CIFAR-10H's annotators (`crowd`, counts of shape
    (10000, 10)) who did not choose the true label, and `disputed`, whether most of the five annotators of Northcutt et
    al. (`errors`) did not choose the given label. Elsewhere the values are -1, 0 and false.
    """
    label_arrays = read_pickled_integers(files[human], [*given.values(), "clean_label"], 50_000)
    counts, disputed = np.load(files[crowd], allow_pickle=False), _read_disputed(files[errors])
    truth = {"train": label_arrays["clean_label"], "test": np.load(files[test], allow_pickle=False)}
    tree: ArchiveFiles = files[pictures]
    rows: list[tuple[bytes, int, str, int]] = []
    # For each class, the indices of its images in the published order.
    numbers = {part: [np.flatnonzero(own == kind) for kind in range(len(CLASSES))] for part, own in truth.items()}
    given_labels = {field: label_arrays[array] for field, array in given.items()}
    for name, content in tree.walk(lambda name: name.endswith(".jpg")):
        part, kind_name, file = name.split("/")
        kind = CLASSES.index(kind_name)
        rows.append((content, kind, part, int(numbers[part][kind][int(file.removesuffix(".jpg"))])))
        if len(rows) == _PIECE:
            yield _make_table(rows, given_labels, counts, disputed)
            rows = []
    yield _make_table(rows, given_labels, counts, disputed)


def _make_table(
    rows: list[tuple[bytes, int, str, int]],
    given_labels: dict[str, NDArray[np.int64]],
    counts: NDArray[Any],
    disputed: NDArray[np.int64],
) -> pa.Table:
    """Add the human labels to rows (image, object, part, number)."""
    pictures, objects, parts, places = zip(*rows, strict=True) if rows else ((), (), (), ())
    kinds, number = np.array(objects, np.int64), np.array(places, np.int64)
    in_training = np.array(parts, np.str_) == "train"
    columns: dict[str, Any] = {"image": pa.array(pictures, pa.binary()), "object": kinds}
    columns |= {"published": pa.array(parts, pa.string()), "number": number}
    for field, labels in given_labels.items():
        columns[field] = np.where(in_training, labels[number], NOBODY)
    test_numbers = np.where(in_training, 0, number)
    chosen = counts[test_numbers, kinds] / counts[test_numbers].sum(axis=1)
    columns["disagreement"] = np.where(in_training, 0.0, 1.0 - chosen)
    columns["disputed"] = ~in_training & np.isin(number, disputed)
    return pa.table(columns)


def _read_disputed(path: Path) -> NDArray[np.int64]:
    """Return the test images whose given label fewer than three of five annotators chose."""
    return np.array([answer["id"] for answer in read_json(path) if answer["mturk"]["given"] < 3], np.int64)


def read_pickled_integers(path: Path, names: Iterable[str], length: int) -> dict[str, NDArray[np.int64]]:
    """Read the arrays `names`, each of `length` numbers, of a dictionary that torch saved in its zip format.

    Raises `BadData` if a name is missing or holds something else.
    """
    with zipfile.ZipFile(path) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        pickled = archive.read(member)
    expected_names, arrays, name = set(names), {}, ""
    for instruction, argument, _ in pickletools.genops(pickled):
        if instruction.name != "BINUNICODE" or not isinstance(argument, str):
            continue
        if argument in expected_names:
            name = argument
        elif name and len(argument) == 8 * length:
            arrays[name] = np.frombuffer(argument.encode("latin-1"), "<i8").astype(np.int64)
            name = ""
    if absent := sorted(expected_names - arrays.keys()):
        raise BadData(f"{path.name} has no array of {length} whole numbers named {', '.join(absent)}")
    return arrays
