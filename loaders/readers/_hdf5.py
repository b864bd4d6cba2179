"""Arrays in HDF5 files, including MATLAB files of version 7.3.

MATLAB stores an array's axes in reverse order and text as character codes, and marks this by attributes of the data
set (MathWorks, "MAT-File Versions": 7.3 is HDF5). Nothing outside the file is read: links to other files, and external
or virtual data sets, are refused.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingGeneratorPackage
from ...core.limits import may_expand

Array = NDArray[Any]

_HEAD = b"MATLAB 7.3 MAT-file"
_LARGE = 1 << 28
"""Arrays of at least this many bytes are copied to a temporary file and memory-mapped."""

_PIECE = 1 << 24
_TEXTS = 256
"""Texts that are read at once."""


def refuse_array_bomb(raw: Path | bytes, unpacked: int) -> None:
    """Raise `ValueError` if a file's arrays are far larger than the file (`core/limits.py`)."""
    size = raw.stat().st_size if isinstance(raw, Path) else len(raw)
    if not may_expand(size, unpacked):
        raise ValueError(f"arrays of {unpacked:,} bytes in {size:,}: refused as a possible decompression bomb")


def is_matlab_hdf5(raw: Path | bytes) -> bool:
    """Whether a .mat file has version 7.3."""
    if isinstance(raw, bytes):
        return raw.startswith(_HEAD)
    with raw.open("rb") as file:
        return file.read(len(_HEAD)) == _HEAD


class Hdf5Arrays(Mapping[str, Array]):
    """The arrays of a file by path ("group/x"), each read on access.

    `matlab`: axes in MATLAB's order (at least two), and text arrays as one string per row. Raises
    `MissingGeneratorPackage` without h5py; access raises `ValueError` or `OSError` if the file or the array is damaged
    or the array is stored in another file.
    """

    def __init__(self, raw: Path | bytes, matlab: bool = False) -> None:
        try:
            import h5py
        except ImportError as error:
            raise MissingGeneratorPackage("HDF5 files", "hdf5") from error
        self._raw, self._matlab, self._h5py = raw, matlab, h5py
        self._names: list[str] = []
        with self._opened() as file:
            file.visititems(self._note)  # follows no links, and visits each object once

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        with self._opened() as file:
            dataset = file[name]
            if dataset.is_virtual or dataset.external:
                raise ValueError(f"{name!r} is stored in other files, which are not read")
            return self._of_matlab(dataset) if self._matlab else self._values(dataset)

    def _opened(self) -> Any:
        return self._h5py.File(self._raw if isinstance(self._raw, Path) else io.BytesIO(self._raw), "r")

    def _note(self, name: str, item: Any) -> None:
        # MATLAB stores the contents of cell arrays in #refs#.
        if isinstance(item, self._h5py.Dataset) and not (self._matlab and name.startswith("#")):
            self._names.append(name)

    def _values(self, dataset: Any) -> Array:
        if self._h5py.check_string_dtype(dataset.dtype) is not None and dataset.dtype.kind == "O":
            return self._texts(dataset)
        if dataset.dtype.kind not in "biufS":
            raise ValueError(f"{dataset.name!r} holds {dataset.dtype}: only numbers and text can be read")
        refuse_array_bomb(self._raw, dataset.nbytes)
        if dataset.nbytes < _LARGE or not dataset.shape:
            return np.asarray(dataset[...])
        return _map_to_file(dataset)

    def _texts(self, dataset: Any) -> Array:
        """Texts of any length, of which many may be stored once; NumPy gives each the space of the longest."""
        if not dataset.shape:
            return np.asarray(dataset.asstr()[...]).astype(np.str_)
        pieces = []
        longest = 0
        refuse_array_bomb(self._raw, dataset.nbytes)
        for start in range(0, len(dataset), _TEXTS):
            pieces.append(np.asarray(dataset.asstr()[start : start + _TEXTS]))
            longest = max(longest, *map(len, pieces[-1].flat), 1)
            refuse_array_bomb(self._raw, longest * np.dtype("U1").itemsize * dataset.size)
        texts: Array = np.concatenate(pieces) if pieces else np.empty(dataset.shape, object)
        return texts.astype(np.str_)

    def _of_matlab(self, dataset: Any) -> Array:
        kind = dataset.attrs.get("MATLAB_class", b"")
        if kind in (b"cell", b"struct", b"function_handle") or dataset.dtype.kind == "O":
            raise ValueError(f"{dataset.name!r} is a {bytes(kind).decode() or 'reference'}: only arrays can be read")
        if dataset.attrs.get("MATLAB_empty", 0):  # it holds the shape instead of values
            shape = tuple(int(side) for side in dataset[...])
            if 0 not in shape:
                raise ValueError(f"{dataset.name!r} is an empty array of the shape {shape}")
            return np.zeros(shape)
        values = self._values(dataset).T
        if kind == b"char":
            return np.array(["".join(map(chr, row)) for row in values.reshape(len(values), -1)])
        return values


def _map_to_file(dataset: Any) -> Array:
    """Copy a large array piece by piece to a temporary file, and map it."""
    with tempfile.TemporaryFile() as file:  # the mapping keeps the file's data after it is closed
        array = np.memmap(file, dataset.dtype, "w+", shape=dataset.shape)
    step = max(1, _PIECE // max(1, dataset.nbytes // dataset.shape[0]))
    for start in range(0, dataset.shape[0], step):
        array[start : start + step] = dataset[start : start + step]
    return array
