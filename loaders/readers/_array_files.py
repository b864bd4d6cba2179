"""Arrays from files: NumPy's .npy and .npz (without unpickling), MATLAB's .mat, and HDF5."""

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
    """Load one array of a file. `array` is its name in an .npz, .mat or HDF5 file; it may be "" if there is only one.

    Raises `BadData` if the file is not an array file, is cut off, or holds Python objects, which need unpickling.
    """
    suffix = PurePosixPath(name.lower()).suffix
    if suffix not in _READERS:
        raise BadDefinition(f"{where}: not an array file, by its suffix: use {', '.join(_READERS)}")
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
        raise BadData(f"{where}: {array!r} holds {values.dtype}: only numbers and text can be read")
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
    """The arrays of a source's files, folders and archives, by path."""

    def __init__(self, files: Mapping[str, Path | ArchiveFiles]) -> None:
        self._places: dict[str, tuple[Path | ArchiveFiles, str]] = {}
        for name, where in files.items():
            for path in where.names() if isinstance(where, ArchiveFiles) else [name]:
                if path in self._places:
                    raise BadData(f"{path} is in more than one of {', '.join(files)}")
                self._places[path] = (where, f"{where.where}: {path}" if isinstance(where, ArchiveFiles) else path)

    def names(self) -> list[str]:
        return sorted(self._places)

    def load(self, reference: str) -> Array:
        """Load the array at `path`, or at `path:array`."""
        path, array = split_array_path(reference)
        if path not in self._places:
            raise BadData(f"no file {path}: the files are {shorten_list(self.names())}")
        where, title = self._places[path]
        return load_array(path, title, where.read(path) if isinstance(where, ArchiveFiles) else where, array)


def split_array_path(reference: str) -> tuple[str, str]:
    """Split a reference such as "data.npz:images" into the path and the array's name."""
    match = _WITH_ARRAY.fullmatch(reference)
    return (match[1] or match[3], match[2] or match[4]) if match else (reference, "")
