"""What readers of published data sets share: archives, tables, lines and JSON, and rows with the files they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.errors import BadData
from ..acquire.archive_files import ArchiveFiles, open_archive
from ._arrow_types import to_tensor_column
from ._file_checks import find_image_problem
from .table import read_table

_PIECE = 1 << 25
"""Approximate bytes of files per table."""
_ROWS = 1 << 16


def get_archive(files: Mapping[str, Any], name: str = "") -> ArchiveFiles:
    """Return the only folder or archive of a distribution, or the one called `name`."""
    if not name and len(files) == 1:
        (name,) = files
    if name not in files:
        raise BadData(f"one folder or archive is needed, but got {', '.join(files) or 'none'}")
    source = files[name]
    return source if isinstance(source, ArchiveFiles) else open_archive(source, name)


def read_utf8_lines(content: Path | bytes) -> list[str]:
    """Read the lines of a file, or of its bytes, without line ends: split at line feeds only, since texts may hold
    Unicode's other line separators. Raises `UnicodeError` if it is not UTF-8."""
    content = content.read_bytes() if isinstance(content, Path) else content
    lines = [line.removesuffix("\r") for line in content.decode("utf-8-sig").split("\n")]
    return lines[:-1] if lines and not lines[-1] else lines


def read_filled_lines(archive: ArchiveFiles, name: str) -> list[str]:
    """Read the lines of a member of an archive, without the empty ones and without spaces around them."""
    lines = archive.read(name).decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def read_columns(archive: ArchiveFiles, member: str, *names: str, separator: str = "") -> dict[str, list[str]]:
    """Read columns of a CSV in an archive, by default all, as text by name; see the reader `table`."""
    chosen: dict[str, Any] = {"columns": {name: name for name in names}} if names else {}
    table = read_table({archive.where: archive}, file=member, separator=separator, **chosen)
    return {name: table[name].to_pylist() for name in table.column_names}


def to_floats(texts: Iterable[str]) -> NDArray[np.float64]:
    """Convert texts to numbers, empty ones to NaN. Raises `ValueError` if one is not a number."""
    return np.array([float(text) if text.strip() else np.nan for text in texts])


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
    rows_of: dict[str, list[int]] = {}
    for row, path in enumerate(paths):
        rows_of.setdefault(path, []).append(row)
    if absent := sorted(rows_of.keys() - set(archive.names())):
        raise BadData(f"{archive.where} has no file {absent[0]} ({len(absent):,} of {len(rows_of):,} are missing)")
    values_of = {name: np.asarray(values, dtype=object) for name, values in fields.items()}

    def iterate_rows() -> Iterator[tuple[str, Any, dict[str, Any]]]:
        for path, content in archive.walk(rows_of.__contains__):
            if convert is None and (problem := find_image_problem(content)):
                raise BadData(f"{archive.where}: {path} {problem}")
            value = content if convert is None else convert(content, path)
            for row in rows_of[path]:
                yield field, value, {name: values[row] for name, values in values_of.items()}

    yield from iterate_file_tables(iterate_rows())


def iterate_file_tables(rows: Iterable[tuple[str, Any, Mapping[str, Any]]]) -> Iterator[pa.Table]:
    """Yield tables of at most about 32 MB from rows of (the file's field, its bytes or array, the other fields)."""
    waiting: list[dict[str, Any]] = []
    size = 0
    for field, content, others in rows:
        waiting.append({field: content, **others})
        size += content.nbytes if isinstance(content, np.ndarray) else len(content)
        if size >= _PIECE or len(waiting) >= _ROWS:
            yield _make_table(waiting)
            waiting, size = [], 0
    if waiting:
        yield _make_table(waiting)


def _make_table(rows: list[dict[str, Any]]) -> pa.Table:
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    for name, values in columns.items():
        if isinstance(values[0], np.ndarray):
            columns[name] = to_tensor_column(np.stack(values))
    return pa.table(columns)
