"""Handwritten digits of three collections as images of one size: MNIST, USPS, and MNIST-M (digits on photos).

Nothing is interpolated, so that the pixels are the same on every platform: MNIST (28 x 28) gets a black border of two
pixels, each pixel of USPS (16 x 16) becomes two by two, MNIST-M is 32 x 32 as published. Grey images have three equal
channels.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, MissingGeneratorPackage, get_first_line
from ._idx import read_images_and_labels
from ._rdata import read_rdata
from ._tensors import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles

SIDE = 32
_PIECE = 4096


def pieces(
    files: dict[str, Any],
    *,
    mnist: dict[str, list[str]],
    usps: dict[str, list[str]],
    mnist_m: str,
    mnist_m_parts: dict[str, list[str]],
) -> Iterator[pa.Table]:
    """Fields: `image` (uint8, 32 x 32 x 3), `digit`, `domain` (mnist, usps or mnist_m) and `published` (train or test).

    Options by published part: `mnist`, the files of images and labels; `usps`, the RData file and the object in it
    (a digit and 256 numbers from -1 to 1 per row); `mnist_m_parts`, the folder and the list of labels in the tree
    `mnist_m`.
    """
    for part, pair in mnist.items():
        images, digits, _ = read_images_and_labels(files, [pair])
        yield from _iterate_tables(_add_frame(images), digits, "mnist", part)
    for part, (file, name) in usps.items():
        images, digits = _read_usps(files[file], file, name)
        yield from _iterate_tables(np.repeat(np.repeat(images, 2, axis=1), 2, axis=2), digits, "usps", part)
    for part, (folder, labels) in mnist_m_parts.items():
        yield from _read_mnist_m(files[mnist_m], folder, labels, part)


def _add_frame(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = images.shape[1:]
    return np.pad(images, ((0, 0), *(((SIDE - side) // 2,) * 2 for side in (height, width))))


def _read_usps(path: Path, file: str, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    objects = read_rdata(path, file)
    if name not in objects:
        raise BadData(f"{file} has no object {name} (it has {', '.join(sorted(objects))})")
    table = objects[name].matrix()
    if table.ndim != 2 or table.shape[1] != 257 or not (np.abs(table[:, 1:]) <= 1).all():
        raise BadData(f"{file}: {name} has shape {table.shape}, not a digit and 256 numbers from -1 to 1 per row")
    pixels = np.rint((table[:, 1:] + 1) * 127.5).astype(np.uint8).reshape(-1, 16, 16)
    return pixels, table[:, 0].astype(np.int64)


def _read_mnist_m(tree: ArchiveFiles, folder: str, labels: str, part: str) -> Iterator[pa.Table]:
    listed = dict(line.split() for line in tree.read(labels).decode().splitlines() if line.strip())
    images: list[NDArray[np.uint8]] = []
    digits: list[int] = []
    seen = 0
    for name, content in tree.walk(lambda name: name.startswith(f"{folder}/")):
        short = name.rpartition("/")[2]
        if short not in listed:
            raise BadData(f"{tree.where}: {labels} has no label for {name}")
        images.append(_decode_pixels(content, f"{tree.where}: {name}"))
        digits.append(int(listed[short]))
        seen += 1
        if len(images) == _PIECE:
            yield from _iterate_tables(np.stack(images), np.array(digits), "mnist_m", part)
            images, digits = [], []
    if seen != len(listed):
        raise BadData(f"{tree.where}: {labels} has {len(listed)} labels, but {folder} has {seen} images")
    if images:
        yield from _iterate_tables(np.stack(images), np.array(digits), "mnist_m", part)


def _decode_pixels(content: bytes, where: str) -> NDArray[np.uint8]:
    """Decode a PNG. The format is lossless, so the pixels are the same with every decoder."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingGeneratorPackage("decoding images", "train") from error
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as opened:
            pixels = np.asarray(opened.convert("RGB"))
    except MemoryError:  # not an error of the image
        raise
    except Exception as error:  # a decoder may raise any exception on damaged input
        raise BadData(f"{where} is not a complete PNG: {get_first_line(error)}") from error
    if pixels.shape != (SIDE, SIDE, 3):
        raise BadData(f"{where} has {pixels.shape[1]} x {pixels.shape[0]} pixels, not {SIDE} x {SIDE}")
    return pixels


def _iterate_tables(images: NDArray[np.uint8], digits: NDArray[np.int64], domain: str, part: str) -> Iterator[pa.Table]:
    import pyarrow as pa

    for start in range(0, len(images), _PIECE):
        some = images[start : start + _PIECE]
        pixels = some if some.ndim == 4 else np.repeat(some[..., None], 3, axis=3)
        constant = {name: pa.repeat(value, len(some)) for name, value in (("domain", domain), ("published", part))}
        columns = {"image": to_tensor_column(pixels), "digit": digits[start : start + _PIECE].astype(np.int64)}
        yield pa.table(columns | constant)
