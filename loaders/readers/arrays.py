"""Arrays in NumPy, MATLAB and HDF5 files with rows along one axis, such as images and their labels.

[distributions.options]
fields = { image = "CIFAR-10-C/{corruption}.npy", label = "CIFAR-10-C/labels.npy" }
blocks = { severity = [1, 2, 3, 4, 5] }
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, get_first_line, shorten_list
from ...splits.schema import Schema
from ..acquire.archive_files import ArchiveFiles
from ..files.patterns import PathPattern, is_hidden
from ._arrow_types import to_tensor_column
from ._cells import repeat_value
from ._hdf5 import Hdf5Arrays, is_matlab_hdf5, refuse_array_bomb
from ._inputs import open_archives

_KINDS = "biufSU"
"""The kinds of NumPy's types that can be read: numbers and text."""
_WITH_ARRAY = re.compile(r"(.+\.\w+):([^/{}]+)|(.+\.(?:h5|hdf5)):([^{}]+)")
Array = NDArray[Any]

_COMPRESSED, _CHUNK = 15, 1 << 20
"""MATLAB's type of a compressed variable, and bytes that are unpacked at once to measure one."""
_PIECE = 1 << 25
"""Approximate bytes of arrays per table."""


def read(
    files: Mapping[str, Path | ArchiveFiles],
    *,
    fields: Mapping[str, str],
    schema: Schema | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    blocks: Mapping[str, Sequence[int | float | str]] | None = None,
    row_axis: Mapping[str, int] | None = None,
    axes: Mapping[str, Sequence[int]] | None = None,
    replace: Mapping[str, Mapping[str, int | float | str]] | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of parallel arrays, in tables of about 32 MB.

    `fields` gives each field's array: a file, or a member of an archive or folder ("set/labels.npy"), with the array's
    name if a file has several ("data.npz:images", "data.h5:group/images"). Paths may have parts ("{corruption}.npy",
    see `files/patterns.py`): there is one set of rows for each file that fits the first such path, and the parts are
    fields; `only` keeps some values of a part. `blocks` are fields whose values each cover an equal run of rows, in
    order. `row_axis` is the axis of rows if it is not the first; `axes` is the order of a row's axes ([2, 0, 1] puts
    channels first). `replace` substitutes single values ({ label = { "10" = 0 } }).

    Raises `BadData` if parallel arrays differ in length, or if a file holds Python objects: nothing is unpickled.
    """
    with ExitStack() as stack:
        array_files = ArrayFiles(open_archives(files, stack))
        for parts in _list_file_sets(array_files, fields, only or {}):
            arrays = {}
            for field, reference in fields.items():
                array = array_files.load(_fill_pattern(reference, parts))
                array = np.moveaxis(array, (row_axis or {}).get(field, 0), 0) if array.ndim else array.reshape(1)
                if order := (axes or {}).get(field):
                    array = array.transpose(0, *(1 + axis for axis in order))
                arrays[field] = array
            _refuse_shapes(arrays, schema)
            rows = _count_rows({_fill_pattern(reference, parts): arrays[field] for field, reference in fields.items()})
            for first, end in _iterate_steps(arrays, rows):
                columns: dict[str, Any] = {
                    field: _convert_column(array[first:end], (replace or {}).get(field, {}))
                    for field, array in arrays.items()
                }
                columns |= {name: repeat_value(value, end - first) for name, value in parts.items()}
                columns |= {
                    name: _make_block_column(name, values, rows, first, end) for name, values in (blocks or {}).items()
                }
                yield pa.table(columns)


def _list_file_sets(
    array_files: ArrayFiles, fields: Mapping[str, str], only: Mapping[str, Sequence[str]]
) -> list[dict[str, str]]:
    """Return the parts of each set of parallel files; one set without parts if no path has any."""
    patterns = [PathPattern(split_array_path(reference)[0]) for reference in fields.values() if "{" in reference]
    if not patterns:
        return [{}]
    named = set(fields.values())
    names = [name for name in array_files.names() if name not in named and not is_hidden(name)]
    candidates = [parts for name in names if (parts := patterns[0].fits(name)) is not None]
    if unknown := sorted({*only, *(part for pattern in patterns for part in pattern.parts)} - {*patterns[0].parts}):
        raise BadDefinition(f"arrays: the path {patterns[0].text!r} has no part {{{unknown[0]}}}")
    file_sets = [parts for parts in candidates if all(parts[part] in values for part, values in only.items())]
    absent = sorted(
        {value for part, values in only.items() for value in values if all(value != p[part] for p in file_sets)}
    )
    if absent or not file_sets:
        raise BadData(f"no file fits {patterns[0].text!r}{' with ' * bool(absent)}{shorten_list(absent)}")
    return file_sets


def _fill_pattern(reference: str, parts: Mapping[str, str]) -> str:
    path, array = split_array_path(reference)
    return (PathPattern(path).filled(parts) if "{" in path else path) + (f":{array}" if array else "")


def _count_rows(arrays: Mapping[str, Array]) -> int:
    lengths = {reference: len(array) for reference, array in arrays.items()}
    (first, rows), *others = lengths.items()
    for reference, length in others:
        if length != rows:
            raise BadData(f"{reference} has {length:,} rows, but {first} has {rows:,}: they must be the same")
    return rows


def _iterate_steps(arrays: Mapping[str, Array], rows: int) -> Iterator[tuple[int, int]]:
    width = sum(array.nbytes // max(1, rows) for array in arrays.values())
    step = max(1, _PIECE // max(1, width))
    for first in range(0, rows, step):
        yield first, min(first + step, rows)


def _convert_column(values: Array, replaced: Mapping[str, int | float | str]) -> Any:
    values = values.reshape(len(values)) if values.ndim == 2 and values.shape[1] == 1 else values
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    for old, new in replaced.items():
        values = np.where(values == values.dtype.type(old), values.dtype.type(new), values)
    if values.ndim > 1:
        return to_tensor_column(values.astype(values.dtype.newbyteorder("=")))
    return pa.array(values.tolist() if values.dtype.kind == "U" else values.astype(values.dtype.newbyteorder("=")))


def _make_block_column(name: str, values: Sequence[Any], rows: int, first: int, end: int) -> pa.Array:
    if not values or rows % len(values):
        raise BadData(f"{rows:,} rows cannot be divided into {len(values)} equal blocks of {name!r}")
    return pa.array(list(values)).take(pa.array(np.arange(first, end) // (rows // len(values))))


def _refuse_shapes(arrays: Mapping[str, Array], schema: Schema | None) -> None:
    """Check that rows have the schema's number of values and, if they have as many axes, the same shape."""
    for field in schema.fields if schema else ():
        shape = arrays[field.name].shape[1:] if field.name in arrays else field.shape
        same_axes = len(shape) == len(field.shape)
        if field.shape and (shape != field.shape if same_axes else int(np.prod(shape)) != int(np.prod(field.shape))):
            raise BadData(
                f"a row of {field.name} is {'x'.join(map(str, shape)) or 'one value'}, but {field.type} is required"
                f"{': set the order of its axes with `axes`' * (sorted(shape) == sorted(field.shape))}"
            )


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
    if values.dtype.kind not in _KINDS:
        raise BadData(f"{where}: {array!r} holds {values.dtype}: only numbers and text can be read")
    return values


def _read_numpy(raw: Path | bytes) -> Mapping[str, Array]:
    """Read .npy (its array is called "") or .npz."""
    opened: Any = raw if isinstance(raw, Path) else io.BytesIO(raw)
    if isinstance(raw, bytes) and raw.startswith(npy.MAGIC_PREFIX):
        _refuse_longer(io.BytesIO(raw), len(raw))
    stored: Any = np.load(opened, mmap_mode="r" if opened is raw else None, allow_pickle=False)
    if isinstance(stored, np.ndarray):
        return {"": stored}
    members = stored.zip.infolist()
    refuse_array_bomb(raw, sum(member.file_size for member in members))
    for member in (member for member in members if member.filename.endswith(".npy")):
        with stored.zip.open(member) as file:
            _refuse_longer(file, member.file_size)
    arrays: Mapping[str, Array] = stored
    return arrays


def _refuse_longer(file: Any, size: int) -> None:
    """Raise `ValueError` if the header of an .npy of `size` bytes states a larger array: NumPy allocates it at once."""
    version = npy.read_magic(file)
    shape, _, kind = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    if math.prod(shape) * kind.itemsize > size:
        raise ValueError(f"its header states an array of shape {shape}, but it has {size:,} bytes")


def read_matlab(raw: Path | bytes) -> Mapping[str, Array]:
    """Read the arrays of numbers (sparse ones too) and of text of a MATLAB file by name, in MATLAB's shapes (at least
    two axes); a text array has one string per row. Cell arrays, structures and objects are left out. Raises
    `ValueError` if the file has another format or is cut off."""
    if is_matlab_hdf5(raw):
        return Hdf5Arrays(raw, matlab=True)
    from scipy.sparse import issparse

    loaded = load_matlab(raw)
    for value in filter(issparse, loaded.values()):
        refuse_array_bomb(raw, math.prod(value.shape) * value.dtype.itemsize)
    arrays = {name: value.toarray() if issparse(value) else value for name, value in loaded.items()}
    return {
        name: value for name, value in arrays.items() if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS
    }


def load_matlab(raw: Path | bytes) -> dict[str, Any]:
    """Return the variables of a MATLAB file (before 7.3) by name, sparse ones as sparse matrices. Raises `ValueError`
    if the file has another format, is cut off, or unpacks to far more than its size."""
    from scipy.io import loadmat

    with raw.open("rb") if isinstance(raw, Path) else io.BytesIO(raw) as file:
        _refuse_matlab_bomb(raw, file)
    try:
        loaded: dict[str, Any] = loadmat(raw if isinstance(raw, Path) else io.BytesIO(raw))
    except MemoryError as error:
        raise ValueError("it needs more memory than there is") from error
    except Exception as error:  # it may raise any exception on damaged input
        raise ValueError(get_first_line(error) or "it is cut off") from error
    return loaded


def _refuse_matlab_bomb(raw: Path | bytes, file: BinaryIO) -> None:
    """Unpack the compressed variables of a MATLAB file `raw`, opened as `file`, to measure them; nothing is stored."""
    order, total = (">" if file.read(128)[126:] == b"MI" else "<"), 0
    while len(tag := file.read(8)) == 8:
        kind, left = struct.unpack(f"{order}II", tag)
        if kind != _COMPRESSED:
            file.seek(left, io.SEEK_CUR)
            continue
        unpacker = zlib.decompressobj()
        while piece := file.read(min(left, _CHUNK)):
            left -= len(piece)
            while piece:
                total += len(unpacker.decompress(piece, _CHUNK))
                refuse_array_bomb(raw, total)
                piece = unpacker.unconsumed_tail


_READERS: dict[str, Callable[[Path | bytes], Mapping[str, Array]]] = {
    ".npy": _read_numpy,
    ".npz": _read_numpy,
    ".mat": read_matlab,
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
