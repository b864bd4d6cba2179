"""The rows of a table's file in blocks, for each format: delimited text, JSON, Parquet and lines that fit a pattern.

Cells are text, or have the types of Parquet. Errors name the line, which is looked up by reading the file again.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ...core.documents import BadDocument, parse_json
from ...core.errors import BadData, BadDefinition, get_first_line, shorten_list
from ...core.limits import may_expand
from ..files.bounded_stream import refuse_bomb
from ._arrow_types import to_stored_column
from ._cells import Cells, is_carried
from ._databases import ColumnSelector, Records, read_npz, read_sqlite, read_workbook
from ._inputs import Input
from ._table_options import TableOptions
from .records import iterate_coco_images

SPACES = "spaces"
"""The name of the separator that is any run of spaces and tabs."""
KEY = "key"
"""The column with a record's key if JSON records are the values of an object."""

_UNIT = b"\x1f"
"""Replaces a separator of several characters: ASCII's unit separator, which does not occur in text."""
_CHUNK, _BLOCK, _ROWS = 1 << 22, 1 << 23, 1 << 16
"""Characters per read of a text, bytes per block of CSV, and rows per block of other formats."""
_LONGEST = 1 << 28
"""A file with a longer line, in characters, is not considered text."""
_INTEGRAL = re.compile(r"-?[0-9]{16,}\.0+")


def read_cells(source: Input, options: TableOptions, select_columns: ColumnSelector) -> Iterator[Cells]:
    """Yield the rows of a file in blocks. `select_columns` is called with the column names, and returns the indices of
    those to read. Raises `BadData` with the line of what cannot be read."""
    match options.format_of(source.path):
        case "csv":
            return _DelimitedFile(source, options, ",").read(select_columns)
        case "tsv":
            return _DelimitedFile(source, options, "\t").read(select_columns)
        case "jsonl":
            return _make_record_cells(source, _iterate_json_lines(source, options), select_columns, "line")
        case "json":
            return _make_record_cells(source, _read_json_list(source, options), select_columns, "record")
        case "coco":
            document = _parse_json(b"".join(_iterate_text(source, options)), source.name, options)
            return _make_record_cells(source, iterate_coco_images(document, source.name), select_columns, "image")
        case "parquet":
            return _read_parquet(source, select_columns)
        case "sqlite":
            return _make_record_cells(source, read_sqlite(source, options), select_columns, "row")
        case "excel":
            return _make_record_cells(source, read_workbook(source, options), select_columns, "row")
        case "npz":
            return read_npz(source, select_columns)
    return _read_pattern_lines(source, options, select_columns)


def _iterate_text(source: Input, options: TableOptions) -> Iterator[bytes]:
    """Yield a text as UTF-8, in blocks of complete lines. Skipped lines and comments become empty lines, so that lines
    keep their numbers. Files in UTF-8 are not checked. Raises `BadData` if a file is not in another encoding."""
    try:
        codec = codecs.lookup(options.encoding).name
    except LookupError as error:
        raise BadDefinition(
            f"table: option encoding: unknown encoding {options.encoding!r}: use utf-8, latin-1, cp1252, utf-16 .."
        ) from error
    unchecked = codec in ("utf-8", "utf-8-sig")
    errors, number = "surrogateescape" if unchecked else "strict", 1
    comments = re.compile(rf"(?m)^{re.escape(options.comment)}[^\r\n]*") if options.comment else None
    with source.opened() as file:
        text = io.TextIOWrapper(file, "utf-8-sig" if unchecked else codec, "surrogateescape", newline="")
        try:
            block = "".join("\n" for _ in range(options.skip) if text.readline(_LONGEST))
            while True:
                block += text.read(_CHUNK)
                if not block:
                    return
                rest = text.readline(_LONGEST)
                if len(rest) == _LONGEST:
                    raise BadData(f"{source.name} has a line of over {_LONGEST:,} bytes: it is not a text file")
                block = comments.sub("", block + rest) if comments else block + rest
                yield block.encode("utf-8", errors)
                number += block.count("\n")
                block = ""
        except UnicodeDecodeError as error:
            raise _make_encoding_error(f"{source.name}, line {number}", options) from error
        except UnicodeEncodeError as error:  # what could not be decoded is a surrogate
            number += block.count("\n", 0, error.start)
            raise _make_encoding_error(f"{source.name}, line {number}", options) from error


def _make_encoding_error(where: str, options: TableOptions) -> BadData:
    return BadData(
        f'{where}: not {options.encoding} text: set the file\'s encoding, such as options = {{ encoding = "latin-1" }}'
    )


class _DelimitedFile:
    """A file of delimited text (CSV, TSV ..), whose columns are texts."""

    def __init__(self, source: Input, options: TableOptions, separator: str) -> None:
        self.source, self.options = source, options
        self.separator = options.separator or separator
        self._cut = self.separator if len(self.separator) == 1 else _UNIT.decode()

    def read(self, select_columns: ColumnSelector) -> Iterator[Cells]:
        """Yield the rows. Raises `BadData` with the line if a row has more or fewer cells than the first, or a text is
        not in the encoding."""
        blocks = self._iterate_blocks()
        first = next(blocks, b"")
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise BadData(f'{self.source.name}: UTF-16 text: set options = {{ encoding = "utf-16" }}')
        names, rest = self._read_header(first)
        if names:
            yield from self._parse(names, sorted(select_columns(names)), chain([rest], blocks))

    def _iterate_blocks(self) -> Iterator[bytes]:
        for block in _iterate_text(self.source, self.options):
            if self.separator == SPACES:
                yield re.sub(rb"[ \t]+", _UNIT, re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", block))
            else:
                yield block if len(self.separator) == 1 else block.replace(self.separator.encode(), _UNIT)

    def _read_header(self, block: bytes) -> tuple[list[str], bytes]:
        """Return the names of the columns, and the block without the header line."""
        lines = _decode_lines(block)
        try:
            first: list[str] = next(filter(None, self._make_reader(lines)), [])
        except csv.Error:
            return [], b""
        header = self.options.header
        if header is True:
            return [name.strip() for name in first], lines.read().encode("utf-8", "surrogateescape")
        return first and list(header or map(str, range(len(first)))), block

    def _make_reader(self, lines: Iterable[str]) -> Any:
        # The same dialect as Arrow's parser below.
        quote = self.options.quote
        return csv.reader(
            lines,
            delimiter=self._cut,
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            escapechar=self.options.escape or None,
            strict=bool(quote),
        )

    def _parse(self, names: list[str], indices: Sequence[int], blocks: Iterator[bytes]) -> Iterator[Cells]:
        keys = [str(index) for index in range(len(names))]
        quote, done = self.options.quote, 0
        try:
            reader = pa.csv.open_csv(
                pa.PythonFile(io.BufferedReader(_BlockStream(blocks)), "r"),
                read_options=pa.csv.ReadOptions(column_names=keys, block_size=_BLOCK),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self._cut,
                    quote_char=quote or False,
                    escape_char=self.options.escape or False,
                    newlines_in_values=bool(quote),
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(keys, pa.string()),
                    # At least one column is read, to count the rows.
                    include_columns=[str(index) for index in indices] or keys[:1],
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
            for batch in reader:
                rows = np.arange(done, done + batch.num_rows)
                yield Cells(self.source.name, names, pa.Table.from_batches([batch]), rows, self._locate_row)
                done += batch.num_rows
        except pa.ArrowInvalid as error:
            if "Empty CSV file" not in str(error):
                raise self._find_error(names, error) from error

    def _number_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each row below the header with the number of its first line."""
        reader = self._make_reader(chain.from_iterable(map(_decode_lines, self._iterate_blocks())))
        header, line = self.options.header is True, 1
        for row in reader:
            if row and not header:
                yield line, row
            header, line = header and not row, reader.line_num + 1

    def _locate_row(self, row: int) -> str:
        return f"line {next(islice(self._number_rows(), row, None))[0]}"

    def _find_error(self, names: list[str], error: Exception) -> BadData:
        """Find the line of an error."""
        line = 0
        try:
            for line, row in self._number_rows():
                if any(not cell.isascii() and re.search(r"[\udc80-\udcff]", cell) for cell in row):
                    return _make_encoding_error(f"{self.source.name}, line {line}", self.options)
                if len(row) != len(names):
                    return BadData(
                        f"{self.source.name}, line {line}: {len(row)} cells, but the first line has {len(names)}: "
                        "check `separator`, `quote`, `escape`, `comment` and `skip` of `options`"
                    )
        except csv.Error as cause:
            after = f"after line {line}" if line else "at its beginning"
            return BadData(
                f"{self.source.name}, {after}: an unmatched quote ({cause}): if quotes are ordinary text, set "
                "options = { quote = '' }"
            )
        return BadData(f"{self.source.name}: not a readable table: {get_first_line(error)}")


def _decode_lines(block: bytes) -> io.StringIO:
    return io.StringIO(block.decode("utf-8", "surrogateescape"), newline="")


class _BlockStream(io.RawIOBase):
    """A read-only file over blocks of bytes."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = filter(None, blocks), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left = self._left or memoryview(next(self._blocks, b""))
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _iterate_json_lines(source: Input, options: TableOptions) -> Records:
    """Yield the record of each line that is not empty, with the line's number."""
    number = 0
    for block in _iterate_text(source, options):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            if line and not line.isspace():
                where = f"{source.name}, line {number}"
                record = _parse_json(line, where, options)
                if not isinstance(record, dict):
                    raise BadData(f"{where}: {line.decode().strip()[:40]!r} is not a JSON object")
                yield number, record


def _read_json_list(source: Input, options: TableOptions) -> Records:
    """Yield the records of a JSON file: a list of records, or an object of records (whose keys become a column), at the
    path `records` from the top. Raises `BadData` if there are no records."""
    document, at = _parse_json(b"".join(_iterate_text(source, options)), source.name, options), options.records
    for step in filter(None, at.split(".")):
        if not isinstance(document, dict) or step not in document:
            known = f" (the keys are {shorten_list(list(document))})" if isinstance(document, dict) else ""
            raise BadData(f"{source.name}: no {step!r} on the path `records`, {at}{known}")
        document = document[step]
    if isinstance(document, dict) and document and all(isinstance(record, dict) for record in document.values()):
        document = [{KEY: key, **record} for key, record in document.items()]
    if not isinstance(document, list) or not all(isinstance(record, dict) for record in document):
        lists = document.items() if isinstance(document, dict) else ()
        inside = [name for name, value in lists if isinstance(value, list)]
        path = json.dumps(".".join(filter(None, (at, *inside[:1]))) or "..", ensure_ascii=False)
        raise BadData(
            f"{source.name} is not a list of records: give the path to them with options = {{ records = {path} }}"
        )
    yield from enumerate(document, 1)


def _parse_json(content: bytes, where: str, options: TableOptions) -> Any:
    """Parse JSON; as `core.documents.parse_json`. Whole numbers with a decimal point ("12345678901234567.0") stay text
    if they are not exact in float64."""
    try:
        return parse_json(content.decode(), load=_DECODER.decode)
    except UnicodeDecodeError as error:
        raise _make_encoding_error(where, options) from error
    except BadDocument as error:
        raise BadData(f"{where}: not JSON: {error}") from error


def _parse_float(text: str) -> float | str:
    return text if len(text) > 17 and _INTEGRAL.fullmatch(text) and not is_carried(text) else float(text)


_DECODER = json.JSONDecoder(parse_float=_parse_float)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _make_record_cells(source: Input, records: Records, select_columns: ColumnSelector, unit: str) -> Iterator[Cells]:
    """Yield records as columns of text; values that are not strings become their JSON text, and dates ISO 8601."""
    names: list[str] = []
    done = 0
    while numbered := list(islice(records, _ROWS)):
        numbers, batch = zip(*numbered, strict=True)
        # Records may omit keys without a value: the columns are the keys of all records so far.
        names = list(dict.fromkeys([*names, *(path for record in batch for path in _iterate_paths(record))]))
        locate = partial(_locate_record, unit, numbers, done)
        cells = Cells(
            source.name, names, pa.table({"": pa.nulls(len(batch))}), np.arange(done, done + len(batch)), locate
        )
        columns = {}
        for index in sorted(select_columns(names)):
            steps = names[index].split(".") if names[index] not in batch[0] else [names[index]]
            values = [_find_value(record, steps) for record in batch]
            if binary := [at for at, value in enumerate(values) if isinstance(value, bytes)]:
                raise cells.wrong(
                    binary[0], f"{names[index]} is binary: save its values as files, and name these in a column"
                )
            columns[str(index)] = pa.array(map(_format_value, values), pa.string())
        yield replace(cells, table=pa.table(columns)) if columns else cells
        done += len(batch)


def _locate_record(unit: str, numbers: Sequence[int], first: int, row: int) -> str:
    return f"{unit} {numbers[row - first]}"


def _iterate_paths(record: dict[str, Any]) -> Iterator[str]:
    """Return the names of a record's values; values of a nested object have both names, joined by a dot."""
    for name, value in record.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{path}" for path in _iterate_paths(value))


def _find_value(value: Any, steps: Sequence[str]) -> Any:
    """Return the value at a path; None if there is none."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _format_value(value: Any) -> str | None:
    """Format a value as text: strings unchanged, numbers in their shortest form, lists and objects as compact JSON,
    dates and times in ISO 8601, midnight as a date."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else _ENCODER.encode(value)


def _read_parquet(source: Input, select_columns: ColumnSelector) -> Iterator[Cells]:
    done = 0
    try:
        with source.opened() as opened:
            file = opened if opened.seekable() else io.BytesIO(opened.read())
            parquet_file = pq.ParquetFile(file)
            paths = list(_iterate_column_paths(parquet_file.schema_arrow))
            names = [".".join(path) for path in paths]
            places = sorted(select_columns(names))
            if not places:
                return
            refuse_expansion(file, parquet_file.metadata, [names[index] for index in places], source.name)
            for batch in parquet_file.iter_batches(_ROWS, columns=[names[index] for index in places]):
                columns = {}
                for index in places:
                    column, inside = pa.chunked_array([batch[paths[index][0]]]), list(paths[index][1:])
                    columns[str(index)] = to_stored_column(pc.struct_field(column, inside) if inside else column)
                rows = np.arange(done, done + batch.num_rows)
                yield Cells(source.name, names, pa.table(columns), rows, lambda row: f"row {row + 1}")
                done += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{source.name}: not a readable Parquet file: {get_first_line(error)}") from error


def open_parquet(path: Path, name: str) -> pq.ParquetFile:
    """Open a Parquet file. Raises `BadData` if it is not one."""
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadData(f"{name}: not a readable Parquet file: {get_first_line(error)}") from error


_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_UNKNOWN = 1 << 60


def refuse_expansion(file: Any, metadata: pq.FileMetaData, columns: Iterable[str], where: str) -> None:
    """Raise `BadData` if columns of a Parquet file decode to far more than its size (`core/limits.py`). A dictionary
    stores equal texts once, so a small file can hold more than memory does, whatever its footer says of sizes."""

    def read_text(group: int, path: str, rows: int) -> Iterator[pa.DictionaryArray]:
        return _iterate_leaves(pq.ParquetFile(file, metadata=metadata, read_dictionary=[path]), group, path, rows)

    size, heads, most, texts = file.seek(0, io.SEEK_END), tuple(columns), 0, []
    for group in range(metadata.num_row_groups):
        chunks = metadata.row_group(group)
        for index in range(chunks.num_columns):
            chunk = chunks.column(index)
            path = chunk.path_in_schema
            if any(path == head or path.startswith(f"{head}.") for head in heads):
                width = _WIDTHS.get(chunk.physical_type) or metadata.schema.column(index).length
                most += chunk.num_values * max(width, 4) + max(0, chunk.total_uncompressed_size)
                if chunk.physical_type == "BYTE_ARRAY":
                    texts.append((group, path, chunk.num_values))
    refuse_bomb(size, most, where)
    if may_expand(size, most + sum(_find_longest(read_text(group, path, 1)) * rows for group, path, rows in texts)):
        return
    for group, path, _ in texts:
        for leaf in read_text(group, path, _ROWS):
            lengths = pc.binary_length(leaf.dictionary).cast(pa.int64())
            most += pc.sum(lengths.take(leaf.indices)).as_py() or 0
            refuse_bomb(size, most, f"{where}: column {path}")


def _find_longest(leaves: Iterator[pa.DictionaryArray]) -> int:
    """The length of the longest text in the dictionary of a column chunk, which comes with the first value; more than
    any bound if the first row is an empty list."""
    leaf = next(leaves, None)
    return _UNKNOWN if leaf is None or not len(leaf) else pc.max(pc.binary_length(leaf.dictionary)).as_py() or 0


def _iterate_leaves(file: pq.ParquetFile, group: int, path: str, rows: int) -> Iterator[pa.DictionaryArray]:
    for batch in file.iter_batches(rows, [group], [path], use_threads=False):
        leaf = batch.column(0)
        while not pa.types.is_dictionary(leaf.type) and leaf.type.num_fields:
            leaf = leaf.field(0) if pa.types.is_struct(leaf.type) else leaf.flatten()
        if pa.types.is_dictionary(leaf.type):
            yield leaf


def _iterate_column_paths(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """Return the names of columns; fields of a structure have both names, joined by a dot."""
    left: list[tuple[tuple[str, ...], pa.Field]] = [((field.name,), field) for field in schema]
    for path, field in left:
        yield path
        if pa.types.is_struct(field.type):
            left.extend(((*path, child.name), child) for child in field.type)


def _read_pattern_lines(source: Input, options: TableOptions, select_columns: ColumnSelector) -> Iterator[Cells]:
    """Yield a row for each line and a column for each named group of the pattern, which every line must fit."""
    if not options.pattern:
        raise BadDefinition("table: the format lines needs a `pattern` with named groups: (?P<name>..)")
    done = before = 0
    for block in _iterate_text(source, options):
        lines: Sequence[bytes] = [line.removesuffix(b"\r") for line in block.removesuffix(b"\n").split(b"\n")]
        numbers: Sequence[int] = range(before + 1, before + 1 + len(lines))
        before += len(lines)
        if options.comment or options.skip:  # these lines are empty
            filled = [(number, line) for number, line in zip(numbers, lines, strict=True) if line]
            numbers, lines = zip(*filled, strict=True) if filled else ((), ())
        try:
            parts = pc.extract_regex(pa.array(lines, pa.binary()).cast(pa.string()), options.pattern)
        except pa.ArrowInvalid as error:
            for number, line in zip(numbers, lines, strict=True):
                if line.decode("utf-8", "replace").encode() != line:
                    raise _make_encoding_error(f"{source.name}, line {number}", options) from error
            raise BadDefinition(f"table: the pattern of {source.name}: {get_first_line(error)}") from error
        locate = partial(_locate_record, "line", numbers, done)
        if parts.null_count:
            first = pc.index(parts.is_null(), True).as_py()
            text = repr(lines[first][:60].decode(errors="replace"))
            raise BadData(f"{source.name}, {locate(done + first)}: {text} does not fit the pattern")
        table = pa.Table.from_struct_array(parts)
        columns = {str(index): table[index] for index in sorted(select_columns(table.column_names))}
        rows = np.arange(done, done + len(lines))
        yield Cells(source.name, table.column_names, pa.table(columns), rows, locate)
        done += len(lines)
