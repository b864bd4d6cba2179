"""The IDX format of the MNIST family: a magic number, the sizes, then unsigned bytes in C order; may be gzipped."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition

_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTE = 8


def read_idx(name: str, path: Path) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes. Raises `BadData` if the file has another format or is cut off."""
    content = path.read_bytes()
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise BadData(f"{name}: a damaged gzip file: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTE or not content[3]:
        raise BadData(f"{name}: not an IDX file of unsigned bytes")
    start = 4 + 4 * content[3]
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">u4"))
    values = np.frombuffer(content[start:], np.uint8)
    if len(shape) != content[3] or values.size != np.prod(shape, dtype=np.int64):
        raise BadData(f"{name}: its header says {'x'.join(map(str, shape))} bytes, but it holds {values.size}")
    return values.reshape(shape)


def read_images_and_labels(
    files: dict[str, Path], pairs: list[list[str]]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Read `pairs` of files (images, labels) and concatenate them: images (rows, height, width), labels (rows,), and
    the index of each row's pair, (rows,)."""
    absent = sorted({name for pair in pairs for name in pair} - files.keys())
    if absent:
        raise BadDefinition(f"the distribution has no file {', '.join(absent)}")
    read = [(read_idx(first, files[first]), read_idx(second, files[second])) for first, second in pairs]
    for (images, labels), (first, second) in zip(read, pairs, strict=True):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise BadData(f"{first} holds {images.shape}, {second} {labels.shape}: not images and their labels")
    origin = np.repeat(np.arange(len(read)), [len(labels) for _, labels in read])
    images = np.concatenate([images for images, _ in read])
    return images, np.concatenate([labels for _, labels in read]).astype(np.int64), origin
