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

from ...core.errors import BadData, BadDefinition, get_first_line, shorten_list
from ..acquire.archive_files import ArchiveFiles
from ._hdf5 import Hdf5Arrays, is_matlab_hdf5
from ._matlab import read_matlab

Array = NDArray[Any]

_WITH_ARRAY = re.compile(r"(.+\.\w+):([^/{}]+)|(.+\.(?:h5|hdf5)):([^{}]+)")


def load_array(name: str, where: str, raw: Path | bytes, array: str) -> Array:
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
            raise BadData(f"{where} has no array {array!r} (it has {shorten_list(sorted(with_names))})")
        values = with_names[array]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError, RuntimeError) as error:
        raise BadData(f"{where}: not a readable {suffix} file: {get_first_line(error)}") from error
    if values.dtype.kind not in "biufSU":
        raise BadData(f"{where}: {array!r} holds {values.dtype}: numbers and text are read, and nothing else")
    return values


def _read_npy(raw: Path | bytes) -> Mapping[str, Array]:
    if isinstance(raw, Path):
        return {"": np.load(raw, mmap_mode="r", allow_pickle=False)}
    return {"": np.load(io.BytesIO(raw), allow_pickle=False)}


def _read_npz(raw: Path | bytes) -> Mapping[str, Array]:
    arrays: Mapping[str, Array] = np.load(raw if isinstance(raw, Path) else io.BytesIO(raw), allow_pickle=False)
    return arrays


def _read_mat(raw: Path | bytes) -> Mapping[str, Array]:
    return Hdf5Arrays(raw, matlab=True) if is_matlab_hdf5(raw) else read_matlab(raw)


_READERS: dict[str, Callable[[Path | bytes], Mapping[str, Array]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".h5": Hdf5Arrays,
    ".hdf5": Hdf5Arrays,
}


class ArrayFiles:
    """The arrays of a source's files, by path; those of folders and archives too."""

    def __init__(self, files: Mapping[str, Path | ArchiveFiles]) -> None:
        self._places: dict[str, tuple[Path | ArchiveFiles, str]] = {}
        for name, where in files.items():
            for path in where.names() if isinstance(where, ArchiveFiles) else [name]:
                if path in self._places:
                    raise BadData(f"{path} is in two of {', '.join(files)}")
                self._places[path] = (where, f"{where.where}: {path}" if isinstance(where, ArchiveFiles) else path)

    def names(self) -> list[str]:
        return sorted(self._places)

    def load(self, reference: str) -> Array:
        """The array that is `path`, or `path:array`."""
        path, array = split_array_path(reference)
        if path not in self._places:
            raise BadData(f"there is no file {path}: there are {shorten_list(self.names())}")
        where, title = self._places[path]
        return load_array(path, title, where.read(path) if isinstance(where, ArchiveFiles) else where, array)


def split_array_path(reference: str) -> tuple[str, str]:
    """The path and the array that "data.npz:images" names."""
    match = _WITH_ARRAY.fullmatch(reference)
    return (match[1] or match[3], match[2] or match[4]) if match else (reference, "")
