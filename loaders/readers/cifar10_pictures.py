"""CIFAR-10 as a folder of images, `part/class/number.jpg`, joined with human labels.

The published human labels follow the order of the published arrays. The k-th image of a class, by file name, is the
k-th image of that class in the arrays, which is found by the true labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, get_first_line
from ._pickled_arrays import read_pickled_integers

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NOBODY = -1
"""The label of images that were not annotated."""


_PIECE = 4096
"""Rows per piece."""


def pieces(
    files: dict[str, Any], *, pictures: str, human: str, given: dict[str, str], test: str, crowd: str, errors: str
) -> Iterator[pa.Table]:
    """Fields: `image`, `object` (0 to 9), `published` (train or test) and `number` (the index in the published arrays),
    for each image of the tree `pictures`.

    Training images have a label from the arrays of CIFAR-10N (`human`) for each field of `given`. Test images, in the
    order of the true labels `test`, have `disagreement`, the share of CIFAR-10H's annotators (`crowd`, counts of shape
    (10000, 10)) who did not choose the true label, and `disputed`, whether most of the five annotators of Northcutt et
    al. (`errors`) did not choose the given label. Elsewhere the values are -1, 0 and false.
    """
    label_arrays = read_pickled_integers(files[human], [*given.values(), "clean_label"], 50_000)
    truth = {"train": label_arrays["clean_label"], "test": _load_array(files[test], (10_000,)).astype(np.int64)}
    counts, disputed = _load_array(files[crowd], (10_000, 10)), _read_disputed(files[errors])
    tree: ArchiveFiles = files[pictures]
    rows: list[tuple[bytes, int, str, int]] = []
    numbers = {part: _list_class_indices(labels) for part, labels in truth.items()}
    given_labels = {field: label_arrays[array] for field, array in given.items()}
    for name, content in tree.walk(lambda name: name.endswith(".jpg")):
        part, category, file = _split_path(name, tree.where)
        kind, index = CLASSES.index(category), int(file)
        if index >= len(numbers[part][kind]):
            raise BadData(
                f"{tree.where}: {name}: more images of {category} than the {len(numbers[part][kind])} published"
            )
        if not content.startswith(b"\xff\xd8") or not content.endswith(b"\xff\xd9"):
            raise BadData(f"{tree.where}: {name} is not a complete JPEG")
        rows.append((content, kind, part, int(numbers[part][kind][index])))
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
    import pyarrow as pa

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


def _split_path(name: str, where: str) -> tuple[str, str, str]:
    part, _, rest = name.partition("/")
    category, _, file = rest.partition("/")
    stem = file.removesuffix(".jpg")
    if part not in ("train", "test") or category not in CLASSES or not stem.isdigit():
        raise BadData(f"{where}: {name} is not part/class/number.jpg")
    return part, category, stem


def _list_class_indices(labels: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return for each class the indices of its images in the published order."""
    return [np.flatnonzero(labels == kind) for kind in range(len(CLASSES))]


def _load_array(path: Path, shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BadData(f"{path.name} is not a readable array: {get_first_line(error)}") from error
    if array.shape != shape:
        raise BadData(f"{path.name} has shape {array.shape}, not {shape}")
    return array


def _read_disputed(path: Path) -> NDArray[np.int64]:
    """Return the test images whose given label fewer than three of five annotators chose."""
    try:
        answers = json.loads(path.read_bytes())
        return np.array([answer["id"] for answer in answers if answer["mturk"]["given"] < 3], np.int64)
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{path.name} is not a list of answers: {get_first_line(error)}") from error
