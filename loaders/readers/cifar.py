"""CIFAR-10 and CIFAR-100 as published (binary or Python version), with the human labels of CIFAR-N next to the true
labels."""

from __future__ import annotations

import csv
import re
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, get_first_line
from ._cifar_batch import read_batch
from ._pickled_arrays import read_pickled_integers

if TYPE_CHECKING:
    import pyarrow as pa

_PIXELS = 3 * 32 * 32
NOBODY = -1
"""The human label of test images, which were not annotated."""


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
    python: dict[str, str] | None = None,
) -> pa.Table:
    """Fields: `image` (uint8, 3 x 32 x 32), a whole number for each of `labels` (the label bytes before each image),
    the text `published` (train or test), for each column of `given` the human label (its array in the file `human`),
    and, if the file `workers` is given, the text `worker`: who gave the label.

    `train` and `test` are members of `archive`, in the order of the human labels. The array `clean_label` must equal
    the column `true`; otherwise the labels belong to other images (`BadData`). Without `human` there are no human
    labels. `python`: the members are batches of the Python version, where each of `labels` has the name given here
    ({ fine = "fine_labels" }); they are read without unpickling.
    """
    import pyarrow as pa

    if absent := sorted({archive, human or archive, workers or archive} - files.keys()):
        raise BadDefinition(f"cifar reads {', '.join(absent)}, but the files are {', '.join(sorted(files)) or 'none'}")
    parts = [_read_records(files[archive], members, labels, python) for members in (train, test)]
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


def _read_records(
    archive: Path, members: list[str], labels: list[str], python: dict[str, str] | None
) -> NDArray[np.uint8]:
    """Read the records of the members: label bytes, then pixels; shape (rows, labels + 3072)."""
    width = len(labels) + _PIXELS
    contents = []
    try:
        with tarfile.open(archive) as tape:
            for member in members:
                file = tape.extractfile(member)
                raw = b"" if file is None else file.read()
                if python is not None:
                    raw = _convert_batch(raw, f"{archive.name}: {member}", [python[label] for label in labels])
                contents.append(np.frombuffer(raw, np.uint8))
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise BadData(f"{archive.name}: {get_first_line(error)}") from error
    for member, content in zip(members, contents, strict=True):
        if not len(content) or len(content) % width:
            raise BadData(f"{archive.name}: {member} has {len(content)} bytes, which is not a multiple of {width}")
    return np.concatenate(contents).reshape(-1, width)


def _convert_batch(content: bytes, where: str, labels: list[str]) -> bytes:
    """Convert a batch of the Python version to records of the binary version."""
    batch = read_batch(content, where)
    pixels = batch.get("data")
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != _PIXELS:
        raise BadData(f"{where}: its 'data' are not rows of {_PIXELS} bytes")
    columns = []
    for name in labels:
        column = batch.get(name)
        fits = isinstance(column, list) and len(column) == len(pixels)
        if not fits or not all(type(value) is int and 0 <= value < 256 for value in column or ()):
            raise BadData(f"{where}: its {name!r} are not {len(pixels)} whole numbers between 0 and 255")
        columns.append(np.array(column, np.uint8).reshape(-1, 1))
    return np.concatenate([*columns, pixels], axis=1).tobytes()


def _read_workers(path: Path, rows: int) -> list[str]:
    """Read who labelled each training image, from lines such as `5--9,239,41` (images 5 to 9, worker 239, 41 s)."""
    who = [""] * rows
    with path.open(newline="", encoding="utf-8") as file:
        for line in list(csv.reader(file))[1:]:
            span = re.fullmatch(r"(\d+)--(\d+)", line[0]) if line else None
            if not span or len(line) < 2 or not int(span[1]) <= int(span[2]) < rows:
                raise BadData(f"{path.name}: {','.join(line)[:40]!r} is not a line of images, worker and seconds")
            for image in range(int(span[1]), int(span[2]) + 1):
                who[image] = line[1]
    if "" in who:
        raise BadData(f"{path.name} names no worker for image {who.index('')}")
    return who
