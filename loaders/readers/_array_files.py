"""Arrays in files: NumPy's .npy and .npz, without unpickling; MATLAB's .mat; HDF5."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, first_line, some_of
from ..acquire.members import Members
from ._hdf5 import Hdf5Arrays, is_matlab_hdf5
from ._matlab import read_matlab

Array = NDArray[Any]

_WITH_ARRAY = re.compile(r"(.+\.\w+):([^/{}]+)|(.+\.(?:h5|hdf5)):([^{}]+)")


def load_arrays(name: str, where: str, raw: Path | bytes, array: str) -> Array:
    """One array of a file: `array` names it in an .npz or a .mat, and may be left out where there is one only.

    Raises `BadData` where the file is none, is cut off, or holds Python objects, which only unpickling could read.
    """
    suffix = PurePosixPath(name.lower()).suffix
    if suffix not in _READERS:
        raise BadDefinition(f"{where}: no file of arrays by its name: use {', '.join(_READERS)}")
    try:
        with_names = _READERS[suffix](raw)
        if not array and len(with_names) == 1:
            (array,) = with_names
        if array not in with_names:
            raise BadData(f"{where} has no array {array!r} (it has {some_of(sorted(with_names))})")
        found = with_names[array]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError, RuntimeError) as error:
        raise BadData(f"{where}: not a readable {suffix} file: {first_line(error)}") from error
    if found.dtype.kind not in "biufSU":
        raise BadData(f"{where}: {array!r} holds {found.dtype}: numbers and text are read, and nothing else")
    return found


def _npy(raw: Path | bytes) -> Mapping[str, Array]:
    if isinstance(raw, Path):
        return {"": np.load(raw, mmap_mode="r", allow_pickle=False)}
    return {"": np.load(io.BytesIO(raw), allow_pickle=False)}


def _npz(raw: Path | bytes) -> Mapping[str, Array]:
    found: Mapping[str, Array] = np.load(raw if isinstance(raw, Path) else io.BytesIO(raw), allow_pickle=False)
    return found


def _mat(raw: Path | bytes) -> Mapping[str, Array]:
    return Hdf5Arrays(raw, matlab=True) if is_matlab_hdf5(raw) else read_matlab(raw)


_READERS: dict[str, Callable[[Path | bytes], Mapping[str, Array]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".mat": _mat,
    ".h5": Hdf5Arrays,
    ".hdf5": Hdf5Arrays,
}


class ArrayFiles:
    """The arrays of a source's files, by path; those of folders and archives too."""

    def __init__(self, files: Mapping[str, Path | Members]) -> None:
        self._places: dict[str, tuple[Path | Members, str]] = {}
        for name, where in files.items():
            for path in where.names() if isinstance(where, Members) else [name]:
                if path in self._places:
                    raise BadData(f"{path} is in two of {', '.join(files)}")
                self._places[path] = (where, f"{where.where}: {path}" if isinstance(where, Members) else path)

    def names(self) -> list[str]:
        return sorted(self._places)

    def load(self, said: str) -> Array:
        """The array that is `path`, or `path:array`."""
        path, array = split(said)
        if path not in self._places:
            raise BadData(f"there is no file {path}: there are {some_of(self.names())}")
        where, title = self._places[path]
        return load_arrays(path, title, where.read(path) if isinstance(where, Members) else where, array)


def split(said: str) -> tuple[str, str]:
    """The path and the array that "data.npz:images" names."""
    found = _WITH_ARRAY.fullmatch(said)
    return (found[1] or found[3], found[2] or found[4]) if found else (said, "")
