"""The records of tables in SQLite databases and Excel workbooks, and the rows of .npz files, for the reader `table`.

Cells of databases and workbooks become text, from which types are inferred as in a CSV; arrays keep their types.
"""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.errors import BadData, MissingGeneratorPackage, get_first_line, shorten_list
from ..files.bounded_stream import refuse_bomb
from ._cells import Cells
from ._inputs import Input
from ._table_options import TableOptions
from .arrays import load_array

_ROWS = 1 << 16

ColumnSelector = Callable[[Sequence[str]], Iterable[int]]
Records = Iterator[tuple[int, dict[str, Any]]]
"""Records by column, each with its number in messages."""


def read_sqlite(source: Input, options: TableOptions) -> Records:
    """Yield the rows of a table of a database: the only one, or that named by the option `records`."""
    with source.opened() as file:
        name, size = getattr(file, "name", None), source.size
        try:
            if isinstance(name, str):
                # Nothing is written beside the file.
                database = sqlite3.connect(f"file:{quote(str(Path(name).absolute()))}?mode=ro&immutable=1", uri=True)
            else:
                database = sqlite3.connect(":memory:")
                size = len(content := bytearray(file.read()))
                content[18:20] = b"\1\1"  # no log is written ahead of a database in memory (fileformat2.html)
                database.deserialize(content)
            with closing(database):
                # A computed column has values that are not in the file.
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, 1 << 20))
                database.execute("PRAGMA trusted_schema = OFF")
                tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite|_%' ESCAPE '|'"
                known = [name for (name,) in database.execute(f"{tables} ORDER BY name")]
                quoted = '"' + _choose(source, "table", known, options).replace('"', '""') + '"'
                rows = database.execute(f"SELECT * FROM {quoted}")
                yield from _iterate_records(source, [column[0] for column in rows.description], rows, 1)
        except sqlite3.Error as error:
            raise BadData(f"{source.name}: not a readable SQLite database: {get_first_line(error)}") from error


def read_workbook(source: Input, options: TableOptions) -> Records:
    """Yield the rows of a sheet of an Excel workbook: the only one, or that named by the option `records`. The first
    row below the skipped ones has the names; empty rows are left out; a formula has the value that Excel stored."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingGeneratorPackage("Excel files", "excel") from error
    with source.opened() as file:
        content = file if file.seekable() else io.BytesIO(file.read())
        try:
            with zipfile.ZipFile(content) as archive:
                refuse_bomb(source.size, sum(member.file_size for member in archive.infolist()), source.name)
            with closing(load_workbook(content, read_only=True, data_only=True)) as book:
                sheet = book[_choose(source, "sheet", [sheet.title for sheet in book.worksheets], options)]
                sheet.reset_dimensions()  # some programs write wrong ones
                rows: Iterator[Sequence[Any]] = islice(sheet.iter_rows(values_only=True), options.skip, None)
                first, start = next(rows, ()), options.skip + 2
                names = [str(cell if cell is not None else index).strip() for index, cell in enumerate(first)]
                if options.header is not True:
                    names = list(options.header or map(str, range(len(first))))
                    rows, start = chain([first], rows), start - 1
                yield from _iterate_records(source, names, rows, start)
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, SyntaxError, OSError) as error:
            raise BadData(f"{source.name}: not a readable .xlsx workbook: {get_first_line(error)}") from error


def _choose(source: Input, what: str, names: Sequence[str], options: TableOptions) -> str:
    """Return the table or sheet to read."""
    if options.records in names or (len(names) == 1 and not options.records):
        return options.records or names[0]
    complaint = f"has no {what} {options.records!r}" if options.records else f"has {len(names)} {what}s"
    known = shorten_list(list(names)) or "none"
    raise BadData(f'{source.name} {complaint} ({known}): name one with options = {{ records = ".." }}')


def _iterate_records(source: Input, names: Sequence[str], rows: Iterable[Sequence[Any]], start: int) -> Records:
    """Yield the rows that are not empty, numbered from `start`. Raises `BadData` if they are far larger than the
    file."""
    # The first of several columns with one name has it; the others keep their places.
    keys = [name if name not in names[:index] else f"{name} ({index})" for index, name in enumerate(names)]
    size = 0
    for number, row in enumerate(rows, start):
        size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        refuse_bomb(source.size, size, source.name)
        if any(cell is not None for cell in row):
            yield number, dict(zip(keys, row, strict=False))


def read_npz(source: Input, select_columns: ColumnSelector) -> Iterator[Cells]:
    """Yield the rows of an .npz file: an array is a column, its first axis the rows."""
    with source.opened() as file:
        content = file.read()
    try:
        members = zipfile.ZipFile(io.BytesIO(content)).namelist()
    except zipfile.BadZipFile as error:
        raise BadData(f"{source.name}: not a readable .npz file: {get_first_line(error)}") from error
    names = [member.removesuffix(".npy") for member in members if member.endswith(".npy")]
    arrays = {
        index: load_array("arrays.npz", source.name, content, names[index]) for index in sorted(select_columns(names))
    }
    lengths = {names[index]: len(array) if array.ndim else 0 for index, array in arrays.items()}
    if len({*lengths.values()}) > 1:
        given = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise BadData(f"{source.name}: its arrays have different numbers of rows ({given})")
    rows = next(iter(lengths.values()), 0)
    for done in range(0, rows, _ROWS):
        columns = {str(index): _to_column(array[done : done + _ROWS], source) for index, array in arrays.items()}
        numbers = np.arange(done, min(rows, done + _ROWS))
        yield Cells(source.name, names, pa.table(columns), numbers, lambda row: f"row {row + 1}")


def _to_column(array: NDArray[Any], source: Input) -> pa.Array:
    if array.dtype.kind not in ("biufUSM" if array.ndim == 1 else "biuf"):
        raise BadData(f"{source.name}: an array of {array.dtype} with {array.ndim} axes cannot be a column of a table")
    array = array.astype(np.float32 if array.dtype == np.float16 else array.dtype.newbyteorder("="))
    values = pa.array(array.ravel())
    for size in reversed(array.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, size)
    return values.cast(pa.string()) if array.dtype.kind == "S" else values
