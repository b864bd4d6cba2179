"""CIFAR-10 as a folder of pictures, `part/class/number.jpg`, joined with what people said of each picture.

The published labels of people follow the order of the published arrays. The k-th picture of a class, by file name, is
the k-th one of that class in the arrays: the true labels in their order say which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, first_line
from ._pickled_arrays import pickled_integers

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.members import Members

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NOBODY = -1
"""The label of a picture that nobody was asked about."""


_PIECE = 4096
"""The rows of one piece."""


def pieces(
    files: dict[str, Any], *, pictures: str, human: str, given: dict[str, str], test: str, crowd: str, errors: str
) -> Iterator[pa.Table]:
    """`image`, `object` (0 to 9), `published` (train or test) and `number` (the place in the published arrays) of each
    picture of the tree `pictures`.

    Training pictures have for each field of `given` a label from the arrays of CIFAR-10N (`human`). Test pictures, in
    the order of the true labels `test`, have `disagreement`, the share of CIFAR-10H's annotators (`crowd`, counts of
    shape (10000, 10)) who did not choose the true label, and `disputed`: whether most of the five annotators of
    Northcutt et al. (`errors`) did not choose the given label. Others have -1, 0 and false.
    """
    held = pickled_integers(files[human], [*given.values(), "clean_label"], 50_000)
    truth = {"train": held["clean_label"], "test": _array(files[test], (10_000,)).astype(np.int64)}
    counts, disputed = _array(files[crowd], (10_000, 10)), _disputed(files[errors])
    tree: Members = files[pictures]
    rows: list[tuple[bytes, int, str, int]] = []
    numbers = {part: _numbers(labels) for part, labels in truth.items()}
    asked = {field: held[array] for field, array in given.items()}
    for name, content in tree.walk(lambda name: name.endswith(".jpg")):
        part, category, file = _split(name, tree.where)
        kind, place = CLASSES.index(category), int(file)
        if place >= len(numbers[part][kind]):
            raise BadData(f"{tree.where}: {name} is one more {category} than the published {len(numbers[part][kind])}")
        if not content.startswith(b"\xff\xd8") or not content.endswith(b"\xff\xd9"):
            raise BadData(f"{tree.where}: {name} is no whole JPEG")
        rows.append((content, kind, part, int(numbers[part][kind][place])))
        if len(rows) == _PIECE:
            yield _table(rows, asked, counts, disputed)
            rows = []
    yield _table(rows, asked, counts, disputed)


def _table(
    rows: list[tuple[bytes, int, str, int]],
    asked: dict[str, NDArray[np.int64]],
    counts: NDArray[Any],
    disputed: NDArray[np.int64],
) -> pa.Table:
    """The rows (picture, object, part, number) with what people said of each picture."""
    import pyarrow as pa

    pictures, objects, parts, places = zip(*rows, strict=True) if rows else ((), (), (), ())
    kinds, number = np.array(objects, np.int64), np.array(places, np.int64)
    in_training = np.array(parts, np.str_) == "train"
    columns: dict[str, Any] = {"image": pa.array(pictures, pa.binary()), "object": kinds}
    columns |= {"published": pa.array(parts, pa.string()), "number": number}
    for field, labels in asked.items():
        columns[field] = np.where(in_training, labels[number], NOBODY)
    shown = np.where(in_training, 0, number)
    chosen = counts[shown, kinds] / counts[shown].sum(axis=1)
    columns["disagreement"] = np.where(in_training, 0.0, 1.0 - chosen)
    columns["disputed"] = ~in_training & np.isin(number, disputed)
    return pa.table(columns)


def _split(name: str, where: str) -> tuple[str, str, str]:
    part, _, rest = name.partition("/")
    category, _, file = rest.partition("/")
    stem = file.removesuffix(".jpg")
    if part not in ("train", "test") or category not in CLASSES or not stem.isdigit():
        raise BadData(f"{where}: {name} is not part/class/number.jpg")
    return part, category, stem


def _numbers(labels: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """For each class the places of its pictures in the published order."""
    return [np.flatnonzero(labels == kind) for kind in range(len(CLASSES))]


def _array(path: Path, shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BadData(f"{path.name} is not a readable array: {first_line(error)}") from error
    if found.shape != shape:
        raise BadData(f"{path.name} has shape {found.shape}, not {shape}")
    return found


def _disputed(path: Path) -> NDArray[np.int64]:
    """The test pictures whose given label fewer than three of five annotators chose."""
    try:
        said = json.loads(path.read_bytes())
        return np.array([one["id"] for one in said if one["mturk"]["given"] < 3], np.int64)
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{path.name} is not a list of answers: {first_line(error)}") from error
