"""MNIST's digits with NIST's metadata: the writer, and whether they were census staff or a student.

QMNIST (Yadav and Bottou 2019, Cold Case: the Lost MNIST Digits, arXiv:1905.10498) gives for each MNIST digit, in its
order, eight numbers: the digit, the NIST series (hsf), the writer, the number of the digit among the writer's, and
its position in NIST's own files.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData
from ._idx import read_images_and_labels
from ._tensors import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD = b"\0\0\x0c\x02"
"""The magic number of an IDX file of 32-bit integers with two axes."""


def read(files: dict[str, Path], *, images: str, labels: str, extended: str) -> pa.Table:
    """Fields: `image` (uint8, 28 x 28), `digit`, `series` (NIST's hsf, such as "0") and `writer` (its number as text),
    for each digit of the IDX files `images` and `labels`. `extended` must be in the same order: raises `BadData` if the
    digits differ."""
    import pyarrow as pa

    pixels, digits, _ = read_images_and_labels(files, [[images, labels]])
    known = _read_extended_labels(files[extended], extended)
    if known.shape != (len(digits), 8):
        raise BadData(f"{extended} has shape {known.shape}, but {images} has {len(digits)} digits")
    if wrong := int((known[:, 0] != digits).sum()):
        raise BadData(f"{extended} is in another order than {labels}: {wrong} of {len(digits)} digits differ")
    return pa.table(
        {
            "image": to_tensor_column(pixels),
            "digit": digits,
            "series": pa.array(known[:, 1].astype(str).tolist()),
            "writer": pa.array(known[:, 2].astype(str).tolist()),
        }
    )


def _read_extended_labels(path: Path, name: str) -> NDArray[np.int64]:
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise BadData(f"{name}: a damaged gzip file: {error}") from error
    rows, columns = np.frombuffer(content[4:12], ">u4").tolist() if content.startswith(_HEAD) else (0, 0)
    if not rows or len(content) != 12 + 4 * rows * columns:
        raise BadData(f"{name}: not an IDX file of 32-bit integers with two axes, or cut off")
    return np.frombuffer(content[12:], ">i4").reshape(rows, columns).astype(np.int64)
