"""Tables: CSV, TSV, JSON (lines or a list of records), Parquet, or lines that fit a pattern; compressed or in archives.

    [distributions.options]
    columns = { age = "Age", race = "race", income = 14 }      # a field's column: its name, or its index from 0
    missing = ["?"]
    if_missing = { age = -1.0, race = "drop" }
    maps = { income = { "<=50K" = 0, ">50K" = 1 } }

Cells are read as text and converted to the types of the source's schema, so that no type is guessed. Rows are read in
blocks, so memory does not grow with the size of a file (except for JSON lists and files in zip or tar archives).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadData, BadDefinition
from ...splits.schema import Schema
from ..files.reader_errors import convert_reader_errors
from ._cells import (
    NAN,
    Cells,
    convert_field,
    describe_missing,
    find_column,
    find_columns,
    find_missing,
    format_field,
    map_values,
    parse_numbers,
    repeat_value,
    to_text,
)
from ._inputs import Files, Input, find_input, iterate_inputs
from ._table_files import read_cells
from ._table_options import TYPED, Join, TableOptions, Value

_NAMED, _ROW_NUMBER = re.compile(r"\{([^{}]+)\}"), "#"
"""A column in a template, and the name of the row's index in a template and in `join`."""

_FILLED: dict[str, Value] = {"int64": 0, "uint64": 0, "float64": 0.0, "bool": False, "string": ""}


def read_table(files: Files, *, schema: Schema | None = None, **options: Any) -> pa.Table:
    """Return the rows of all files as one table; see `read`."""
    tables = list(read(files, schema=schema, **options))
    if not tables:
        raise BadData(f"{', '.join(sorted(files))} {'has' if len(files) == 1 else 'have'} no rows")
    return pa.concat_tables(tables, promote_options="permissive")


def read(files: Files, *, schema: Schema | None = None, **options: Any) -> Iterator[pa.Table]:
    """Yield the rows of all files in blocks, as the fields of `schema` (without a schema, with the file's columns).

    Which files: `format` ("csv", "tsv", "json", "jsonl", "parquet", "sqlite", "excel", "npz", "coco", "lines"; by
    default from the name), `members` (of archives and folders: names or patterns such as "data/*.csv"), `file` (only
    the file with this name, or this path in an archive), `each` (other options for a file, by its name or a pattern).

    File format: `encoding`, `skip` (lines at the beginning), `comment` (the prefix of comment lines), `separator` (","
    or, for .tsv, a tab; any text, or "spaces"), `quote` ('"', or '' for none), `escape`, `header` (true, false, or the
    names if no line has them), `decimal` ("."), `trim` (remove spaces around cells), `records` (JSON: the path to the
    records, such as "data.examples"; SQLite and Excel: the table or sheet), `pattern` (lines: a regular expression with
    named groups).

    Which fields: `columns` (a field's column by name, "a.b" in JSON, or by index from 0; for a tensor a list of
    columns, or { first = .., last = .. }; by default every field has the column with its name), `texts` (a field's text
    from a template of columns: "{first} {last}"; `{#}` is the row's index), `constants` (a field's value), `from_name`
    (a pattern of the file's name, whose parts are columns: "PRSA_{station}_*.csv"), `join` (other tables, whose columns
    are joined by a key, or with "#" by the row's index: [{ file, on = "column" or { own = "its" } or "#", and options
    of the file format }]), `row_number`
    (the field of the row's index in its file, from 0), `ranges` ({ field = { text = [first, end] } } by that index),
    `maps` (a field's value for each text, or a list of texts whose indices are the values), `above` and `at_least` (a
    field is 1 if its number is above or at least the bound, else 0).

    Missing values: null and NaN; an empty cell if the field is not a text, or if `if_missing` or `is_missing` handles
    the field; and the values in `missing` (texts, and numbers of Parquet as text: ["?", "-999"]). `if_missing` is what
    happens then ("error", "drop" the row, or { field = value or "drop" }); `is_missing` ({ field = other }) makes a
    field of whether the other is missing.

    Which rows: `where` and `without` ({ column = value or values }, as text), `between` ({ column = [low, high] }, both
    ends included), `sample` ({ rows, seed }, drawn by index).

    Raises `BadData` with file and line if a cell is not valid, and if a column is missing.
    """
    table_options = TableOptions.parse(options)
    if table_options.sample:
        yield _draw_sample(files, schema, table_options)
        return
    yield from (table for _, table in _iterate_blocks(_iterate_makers(files, table_options, schema)))


def iterate_stored_pieces(
    files: Files, unfilled: Collection[str], **options: Any
) -> Iterator[tuple[str, bool, pa.Table]]:
    """Yield the cells of all files in blocks, by field, before conversion, to infer types from them: each block with
    the name of its file, and whether that format has types. Rows with missing values are left out, except for the
    fields in `unfilled`, which are null there."""
    for maker, table in _iterate_blocks(
        _iterate_makers(files, TableOptions.parse({**options, "if_missing": "drop"}), None, unfilled)
    ):
        yield maker.source.name, maker.options.format_of(maker.source.path) in TYPED, table


def _iterate_blocks(makers: Iterable[tuple[Input, _FieldMaker]]) -> Iterator[tuple[_FieldMaker, pa.Table]]:
    for source, maker in makers:
        with convert_reader_errors(source.name):
            for table, _, _ in _iterate_fields(source, maker):
                if table.num_rows:
                    yield maker, table


def _iterate_makers(
    files: Files, options: TableOptions, schema: Schema | None, unfilled: Collection[str] = ()
) -> Iterator[tuple[Input, _FieldMaker]]:
    joined = [LookupTable(files, join) for join in options.join]
    chosen = iterate_inputs(files, options.members, {join.file for join in options.join})
    for source in [find_input(files, options.file)] if options.file else chosen:
        yield source, _FieldMaker(source, options.of_file(source.path), schema, joined, unfilled)


def _iterate_fields(source: Input, maker: _FieldMaker) -> Iterator[tuple[pa.Table, NDArray[np.int64], int]]:
    """Yield blocks of fields, the indices in the file of the rows that are kept, and how many rows were read so far."""
    read = 0
    for cells in read_cells(source, maker.options, maker.select_columns):
        read += len(cells.rows)
        yield *maker.make_fields(cells), read


def _draw_sample(files: Files, schema: Schema | None, options: TableOptions) -> pa.Table:
    """Draw a sample of all rows that are kept, by their indices over all files."""
    assert options.sample
    tables, places, before = [], [np.empty(0, np.int64)], 0
    for source, maker in sorted(_iterate_makers(files, options, schema), key=lambda pair: pair[0].path):
        read = 0
        for table, rows, read in _iterate_fields(source, maker):  # noqa: B007
            tables.append(table)
            places.append(rows + before)
        before += read
    every = np.concatenate(places)
    if options.sample.rows > len(every):
        raise BadDefinition(
            f"{', '.join(files)}: cannot sample {options.sample.rows} of {len(every)} rows: lower `rows` of `sample`"
        )
    sample = np.sort(draw_permutation(options.sample.seed, every.astype(np.uint64))[: options.sample.rows])
    return pa.concat_tables(tables).take(sample)


class LookupTable:
    """Another table in memory, whose columns are joined to each row by a key, or by the row's index. `names` are its
    other columns, `source` is its file."""

    def __init__(self, files: Files, join: Join) -> None:
        source = find_input(files, join.file)
        self.own_key, its_key = join.keys
        blocks = list(read_cells(source, join.form, lambda names: range(len(names))))
        if not blocks:
            raise BadData(f"{source.name} has no rows")
        names, self.source = blocks[0].names, source.name
        table = pa.concat_tables([block.table for block in blocks], promote_options="permissive")
        self._rows, self._keys = table.num_rows, None
        at = -1 if its_key == _ROW_NUMBER else find_column(names, its_key, source.name)
        others = [number for number in range(len(names)) if number != at]
        self.names = [join.prefix + names[number] for number in others]
        self._columns = [to_text(table[str(number)]).combine_chunks() for number in others]
        if at < 0:
            return
        self._keys = to_text(table[str(at)]).combine_chunks()
        counts = pc.value_counts(self._keys)
        if len(counts) < len(self._keys):
            twice = next(entry["values"].as_py() for entry in counts if entry["counts"].as_py() > 1)
            raise BadData(
                f"{self.source} has several rows whose {its_key!r} is {twice!r}: join by a column with unique values "
                "(`on` of `join`), or remove all but one of these rows from the file"
            )

    def find_columns(self, cells: Cells) -> list[pa.Array]:
        """Return its columns for some rows; null for rows whose key it does not have."""
        if self._keys is None:
            indices = pa.array(cells.rows, mask=cells.rows >= self._rows)
        else:
            indices = pc.index_in(to_text(cells.column(self.own_key)), self._keys).combine_chunks()
        return [column.take(indices) for column in self._columns]


class _FieldMaker:
    """Converts the cells of one file to fields."""

    def __init__(
        self,
        source: Input,
        options: TableOptions,
        schema: Schema | None,
        joined: Sequence[LookupTable] = (),
        unfilled: Collection[str] = (),
    ) -> None:
        """unfilled: fields whose missing values stay null."""
        self.source, self.options, self.joined, self.unfilled = source, options, joined, unfilled
        self.kinds = {field.name: field for field in schema.fields} if schema else {}
        parts = options.name_parts.fits(source.path) if options.name_parts else {}
        if parts is None:
            raise BadData(f"{source.name}: its name does not fit the pattern of from_name, {options.from_name!r}")
        self.parts: dict[str, str] = parts
        self._computed_fields = {
            *options.constants,
            *options.ranges,
            *options.is_missing,
            *options.texts,
            options.row_number,
        }

    def _columns(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the column or columns of each field."""
        return dict(self.options.columns) or {
            name: name for name in self.kinds or names if name not in self._computed_fields
        }

    def select_columns(self, names: Sequence[str]) -> set[int]:
        """Return the indices of the columns that are needed; called with a file's own columns."""
        every = self._every(names)
        used = [*self._columns(every).values(), *self.options.where, *self.options.without, *self.options.between]
        used += [name for text in self.options.texts.values() for name in _list_columns(text)]
        used += [joined.own_key for joined in self.joined if joined.own_key != _ROW_NUMBER]
        places = {index for column in used for index in find_columns(every, column, self.source.name)}
        own = [names[index] for index in places if index < len(names)]
        if not self.kinds and (twice := [name for name in own if list(names).count(name) > 1]):  # data of the user's
            raise BadDefinition(f"{self.source.name} has several columns named {twice[0]!r}: rename them")
        return {index for index in places if index < len(names)}

    def _every(self, names: Sequence[str]) -> list[str]:
        """Return a file's columns, those from its name, and joined ones. Raises `BadDefinition` if two have one
        name."""
        every = list(names)
        for where, added_names in (
            ("its name", list(self.parts)),
            *((lookup.source, lookup.names) for lookup in self.joined),
        ):
            if both := sorted(set(every) & set(added_names)):
                raise BadDefinition(
                    f"{self.source.name} has a column {both[0]!r}, and so has {where}: rename that one "
                    "with `prefix` of `join` or in the pattern `from_name`"
                )
            every += added_names
        return every

    def make_fields(self, cells: Cells) -> tuple[pa.Table, NDArray[np.int64]]:
        """Convert a block of rows to fields; return them and the indices of the rows that are kept."""
        options = self.options
        cells = self._filtered(self._prepared(cells))
        columns = {**self._columns(cells.names), **options.texts}
        holes = {field: self._holes(cells, field, spec) for field, spec in columns.items()}
        then = {field: self._then(field) for field in columns}
        keep = np.ones(len(cells.rows), bool)
        for field, hole in holes.items():
            if field in self.unfilled:
                continue
            if then[field] == "drop":
                keep &= ~hole
            elif then[field] == "error" and hole.any():
                raise cells.wrong(int(np.flatnonzero(hole)[0]), describe_missing(self._title(field)))
        cells, holes = cells.filter_rows(keep), {field: hole[keep] for field, hole in holes.items()}
        arrays: dict[str, Any] = {
            field: self._filled(cells, field, spec, holes[field], then[field]) for field, spec in columns.items()
        }
        for flag, field in options.is_missing.items():
            if field not in holes:
                raise BadDefinition(f"table: is_missing.{flag}: {field!r} is not a field with a column")
            arrays[flag] = pa.array(holes[field])
        arrays |= {field: repeat_value(value, len(cells.rows)) for field, value in options.constants.items()}
        arrays |= {field: self._ranged(cells, field, named) for field, named in options.ranges.items()}
        if options.row_number:
            arrays[options.row_number] = pa.array(cells.rows)
        return pa.table(arrays), cells.rows

    def _prepared(self, cells: Cells) -> Cells:
        """Add the columns from the file's name and from joined tables; remove spaces around cells if `trim` is set."""
        if self.options.trim:
            table = cells.table
            columns = [
                pc.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column
                for column in table.columns
            ]
            cells = replace(cells, table=pa.Table.from_arrays(columns, names=table.column_names))
        parts = [repeat_value(text, len(cells.rows)) for text in self.parts.values()]
        cells = cells.with_columns(list(self.parts), parts)
        for joined in self.joined:
            cells = cells.with_columns(joined.names, joined.find_columns(cells))
        return cells

    def _filtered(self, cells: Cells) -> Cells:
        options = self.options
        for column, values in options.where.items():
            cells = cells.filter_rows(_is_among(cells, column, values))
        for column, values in options.without.items():
            cells = cells.filter_rows(~_is_among(cells, column, values))
        for column, (low, high) in options.between.items():
            cells = cells.filter_rows(~find_missing(cells.column(column), ["", *options.missing], numeric=True))
            numbers_read = parse_numbers(cells, cells.column(column), column, options.decimal)
            cells = cells.filter_rows((numbers_read >= low) & (numbers_read <= high))
        return cells

    def _title(self, field: str) -> str:
        column = self.options.columns.get(field, field)
        return format_field(field, column) if isinstance(column, str | int) else field

    def _holes(self, cells: Cells, field: str, spec: Any) -> NDArray[np.bool_]:
        """Return a mask of the rows where a field is missing. An empty cell of a text field is a text, unless an option
        handles missing values of the field."""
        texts, kind, known = list(self.options.missing), self.kinds.get(field), self.options.maps.get(field, ())
        is_text = kind is None or kind.item in ("string", "bytes")
        handled = self._then(field) != "error" or field in self.options.is_missing.values()
        if "" not in known and (not is_text or (kind is not None and handled)):
            texts.append("")
        shaped, unknown = kind is not None and bool(kind.shape), kind is not None and kind.role == "label"
        named_nan = any(isinstance(text, str) and re.match(NAN, text) for text in known)
        numeric = not is_text and not named_nan and not (shaped and unknown)
        hole = np.zeros(len(cells.rows), bool)
        if field in self.options.texts:
            for column in _list_columns(spec):
                hole |= find_missing(cells.column(column))
            return hole
        for index in find_columns(cells.names, spec, cells.name):
            column = cells.column(index)
            hole |= find_missing(column, texts, numeric=numeric, tensor=numeric and shaped, nan=not unknown)
        return hole

    def _then(self, field: str) -> Value:
        """Return how missing values of a field are handled: "error", "drop", or the value that replaces them."""
        rule = self.options.if_missing
        if rule == "drop":
            return "drop"
        if isinstance(rule, dict) and field in rule:
            return rule[field]
        kind = self.kinds.get(field)
        return _FILLED.get(kind.type, "error") if kind and field in self.options.is_missing.values() else "error"

    def _filled(self, cells: Cells, field: str, spec: Any, hole: NDArray[np.bool_], then: Value) -> Any:
        """Return a field's values, with `then` in place of missing ones."""
        if field in self.unfilled or not hole.any():
            return self._values(cells, field, spec)
        values = self._values(cells.filter_rows(~hole), field, spec)
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_nested(values.type):
            raise BadDefinition(f"table: {field!r} is a tensor: a missing one cannot be replaced by a value")
        expanded = values.take(pa.array(np.cumsum(~hole) - 1, mask=hole))
        try:
            return expanded.fill_null(pa.scalar(then).cast(values.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadDefinition(f"table: if_missing.{field} is {then!r}, but the field is {values.type}") from error

    def _values(self, cells: Cells, field: str, spec: Any) -> Any:
        options, kind, title = self.options, self.kinds.get(field), self._title(field)
        columns = (
            [pa.chunked_array([_fill_template(cells, spec)])]
            if field in options.texts
            else [cells.column(index) for index in find_columns(cells.names, spec, cells.name)]
        )
        if field in options.maps:
            return map_values(cells, columns[0], options.maps[field], title)
        for bounds, exceeds in ((options.above, np.greater), (options.at_least, np.greater_equal)):
            if field in bounds:
                mask = exceeds(parse_numbers(cells, columns[0], title, options.decimal), bounds[field])
                return pa.array(mask.astype(np.int64))
        if kind is None:
            if len(columns) != 1:
                raise BadDefinition(f"table: {field!r} has several columns, but no schema gives its type")
            return columns[0]
        return convert_field(cells, columns, kind, title, options.decimal)

    def _ranged(self, cells: Cells, field: str, named: dict[str, tuple[int, int]]) -> pa.Array:
        indices = np.full(len(cells.rows), -1)
        for number, (first, end) in enumerate(named.values()):
            indices[(cells.rows >= first) & (cells.rows < end)] = number
        if (indices < 0).any():
            raise cells.wrong(
                int(np.argmin(indices)),
                f"no range of {field!r} contains row {cells.rows[np.argmin(indices)]}: extend `ranges`",
            )
        return pa.array(list(named)).take(pa.array(indices))


def _list_columns(template: str) -> list[str]:
    """Return the columns in a template."""
    return [name for name in _NAMED.findall(template) if name != _ROW_NUMBER]


def _fill_template(cells: Cells, template: str) -> pa.Array:
    """Fill a template with each row's cells."""
    pieces: list[Any] = []
    for number, piece in enumerate(_NAMED.split(template)):
        if not number % 2:
            pieces.append(repeat_value(piece, len(cells.rows)))
        elif piece == _ROW_NUMBER:
            pieces.append(pa.array(cells.rows).cast(pa.string()))
        else:
            pieces.append(to_text(cells.column(piece)).combine_chunks())
    return pc.binary_join_element_wise(*pieces, "")


def _is_among(cells: Cells, column: str, values: Value | list[Value]) -> NDArray[np.bool_]:
    every = values if isinstance(values, list) else [values]
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in every]
    mask: NDArray[np.bool_] = pc.is_in(to_text(cells.column(column)), pa.array(texts, pa.string())).to_numpy()
    return mask
