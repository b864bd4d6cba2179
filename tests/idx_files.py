"""IDX files of a few made-up digits, for tests of what is drawn from MNIST."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def idx(values: NDArray[np.uint8]) -> bytes:
    """The bytes of an IDX file."""
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def digits(folder: Path, count: int, name: str = "some", zipped: bool = False, side: int = 28) -> dict[str, Path]:
    """`count` images of noise, each another, with the labels 0, 1 .. 9, 0, 1 ..; as two files by name."""
    rng = np.random.default_rng(count)
    images = rng.integers(1, 256, (count, side, side), dtype=np.uint8)
    labels = (np.arange(count) % 10).astype(np.uint8)
    result = {}
    for what, values in (("images", images), ("labels", labels)):
        path = folder / f"{name}-{what}"
        path.write_bytes(gzip.compress(idx(values)) if zipped else idx(values))
        result[path.name] = path
    return result
