"""Arrays in HDF5 files; those that MATLAB writes as version 7.3 too.

MATLAB keeps an array's axes in reverse, texts as numbers of their letters, and says so by attributes of the data set
(MathWorks, "MAT-File Versions": 7.3 is HDF5). Nothing outside the file is read: links to other files, and data sets
that lie in other files or are put together from them, are refused.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UnmadeRows

Array = NDArray[Any]

_HEAD = b"MATLAB 7.3 MAT-file"
_LARGE = 1 << 28
"""Bytes from which an array is put into a temporary file, from which it is mapped."""

_PIECE = 1 << 24


def is_matlab_hdf5(raw: Path | bytes) -> bool:
    """Whether a .mat file is of version 7.3."""
    if isinstance(raw, bytes):
        return raw.startswith(_HEAD)
    with raw.open("rb") as file:
        return file.read(len(_HEAD)) == _HEAD


class Hdf5Arrays(Mapping[str, Array]):
    """The arrays of a file by their paths ("group/x"); each is read when it is asked for.

    `matlab`: axes in MATLAB's order (at least two), texts as one a row. Raises `UnmadeRows` without h5py; asking
    raises `ValueError` or `OSError` where the file or the array is damaged or lies elsewhere.
    """

    def __init__(self, raw: Path | bytes, matlab: bool = False) -> None:
        try:
            import h5py
        except ImportError as error:
            raise UnmadeRows("HDF5 files", "hdf5") from error
        self._raw, self._matlab, self._h5py = raw, matlab, h5py
        self._names: list[str] = []
        with self._opened() as file:
            file.visititems(self._note)  # follows no link, and comes to each object once

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        with self._opened() as file:
            kept = file[name]
            if kept.is_virtual or kept.external:
                raise ValueError(f"{name!r} lies in other files, which are not read")
            return self._of_matlab(kept) if self._matlab else self._values(kept)

    def _opened(self) -> Any:
        return self._h5py.File(self._raw if isinstance(self._raw, Path) else io.BytesIO(self._raw), "r")

    def _note(self, name: str, one: Any) -> None:
        # MATLAB keeps what cells refer to in #refs#.
        if isinstance(one, self._h5py.Dataset) and not (self._matlab and name.startswith("#")):
            self._names.append(name)

    def _values(self, kept: Any) -> Array:
        if self._h5py.check_string_dtype(kept.dtype) is not None and kept.dtype.kind == "O":
            texts: Array = np.asarray(kept.asstr()[...])
            return texts.astype(np.str_)
        if kept.dtype.kind not in "biufS":
            raise ValueError(f"{kept.name!r} holds {kept.dtype}: numbers and text are read, and nothing else")
        if kept.nbytes < _LARGE or not kept.shape:
            return np.asarray(kept[...])
        return _mapped(kept)

    def _of_matlab(self, kept: Any) -> Array:
        kind = kept.attrs.get("MATLAB_class", b"")
        if kind in (b"cell", b"struct", b"function_handle") or kept.dtype.kind == "O":
            raise ValueError(f"{kept.name!r} is a {bytes(kind).decode() or 'reference'}: arrays are read, nothing else")
        if kept.attrs.get("MATLAB_empty", 0):  # it holds the shape in place of values
            return np.zeros(tuple(int(side) for side in kept[...]))
        values = self._values(kept).T
        if kind == b"char":
            return np.array(["".join(map(chr, row)) for row in values.reshape(len(values), -1)])
        return values


def _mapped(kept: Any) -> Array:
    """A large array, piece by piece into a temporary file that goes with it."""
    with tempfile.TemporaryFile() as file:  # a mapped file stays for as long as its map
        array = np.memmap(file, kept.dtype, "w+", shape=kept.shape)
    step = max(1, _PIECE // max(1, kept.nbytes // kept.shape[0]))
    for start in range(0, kept.shape[0], step):
        array[start : start + step] = kept[start : start + step]
    return array
