"""Helpers for data sets in a folder or an archive that consist of a table and the files that it names."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, get_first_line
from ..acquire.archive_files import ArchiveFiles, open_archive
from ._file_checks import find_image_problem

if TYPE_CHECKING:
    import pyarrow as pa

Texts = NDArray[np.object_]
"""A column of strings."""

_BLOCK = 1 << 26
"""Bytes of files per piece of a table."""


def get_archive(files: Mapping[str, Any], name: str = "") -> ArchiveFiles:
    """Return the only folder or archive of a distribution, or the one called `name`."""
    if not name and len(files) == 1:
        (name,) = files
    if name not in files:
        raise BadData(f"one folder or archive is needed, but got {', '.join(files) or 'none'}")
    source = files[name]
    return source if isinstance(source, ArchiveFiles) else open_archive(source, name)


def read_csv_columns(content: bytes, where: str, names: Sequence[str], *, separator: str = ",") -> dict[str, Texts]:
    """Read columns of a CSV by name, as strings. Raises `BadData` if one is missing or a line cannot be read."""
    import pyarrow as pa
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    # A record must fit into one block, so long texts need large blocks.
    block = csv.ReadOptions(block_size=max(1 << 24, min(len(content), 1 << 30)))
    text = csv.ConvertOptions(
        include_columns=list(names), column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    try:
        table = csv.read_csv(io.BytesIO(content), block, parse, text)
    except (pa.ArrowInvalid, pa.ArrowKeyError, KeyError) as error:
        raise BadData(f"{where} is not a table with {', '.join(names)}: {get_first_line(error)}") from error
    return {name: np.asarray(table[name].to_pylist(), dtype=object) for name in names}


def read_member_columns(
    archive: ArchiveFiles, name: str, names: Sequence[str], *, separator: str = ","
) -> dict[str, Texts]:
    """Read columns of a CSV member of an archive; see `read_csv_columns`."""
    return read_csv_columns(archive.read(name), f"{archive.where}: {name}", names, separator=separator)


def parse_integers(texts: Texts, where: str) -> NDArray[np.int64]:
    """Convert strings to whole numbers ("1.0" counts). Raises `BadData` with the first that is not one."""
    floats = parse_floats(texts, where)
    wrong = np.flatnonzero(floats != np.floor(floats))  # NaN differs from itself
    if len(wrong):
        raise BadData(f"{where}: row {wrong[0] + 1} has {texts[wrong[0]]!r}, not a whole number")
    return floats.astype(np.int64)


def parse_floats(texts: Texts, where: str) -> NDArray[np.float64]:
    """Convert strings to numbers, empty ones to NaN. Raises `BadData` with the first that is not a number."""
    try:
        return np.asarray([float(text) if text.strip() else np.nan for text in texts], np.float64)
    except ValueError as error:
        raise BadData(f"{where}: {get_first_line(error)}") from error


def attach_files(
    archive: ArchiveFiles,
    paths: Sequence[str],
    fields: Mapping[str, Any],
    *,
    field: str = "image",
    convert: Callable[[bytes, str], Any] | None = None,
) -> Iterator[pa.Table]:
    """Yield rows with their files, in pieces, in the order in which reading is fast. `paths` gives the file of each row
    (several rows may share one). `convert` turns a file's bytes and path into the value of `field`; without it the
    bytes are checked to be an image and stored unchanged.

    Raises `BadData` if a file is missing or an image is damaged.
    """
    import pyarrow as pa

    rows_of: dict[str, list[int]] = {}
    for row, path in enumerate(paths):
        rows_of.setdefault(path, []).append(row)
    if absent := sorted(rows_of.keys() - set(archive.names())):
        raise BadData(f"{archive.where} has no file {absent[0]} ({len(absent):,} of {len(rows_of):,} are missing)")
    arrays = {name: np.asarray(values, dtype=object) for name, values in fields.items()}
    rows: list[int] = []
    values: list[Any] = []
    size = 0

    def piece() -> pa.Table:
        return pa.table({field: values} | {name: array[rows].tolist() for name, array in arrays.items()})

    for path, content in archive.walk(rows_of.__contains__):
        if convert is None and (problem := find_image_problem(content)):
            raise BadData(f"{archive.where}: {path} {problem}")
        value = content if convert is None else convert(content, path)
        for row in rows_of[path]:
            rows.append(row)
            values.append(value)
        size += len(content)
        if size >= _BLOCK:
            yield piece()
            rows, values, size = [], [], 0
    if rows:
        yield piece()
