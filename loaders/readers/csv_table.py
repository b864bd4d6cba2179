"""CSV tables of people, flights, sounds: columns of mixed types become fields by name."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import shuffled
from ...core.errors import BadData, BadDefinition, first_line
from ._tensors import tensor_column

if TYPE_CHECKING:
    import pyarrow as pa

Levels = list[str | list[str]]

_NONE: Mapping[str, Any] = MappingProxyType({})


def read(
    files: dict[str, Path],
    *,
    names: list[str] | None = None,
    skip: Mapping[str, int] = _NONE,
    missing: Sequence[str] = (),
    without: Mapping[str, list[str]] = _NONE,
    between: Mapping[str, list[float]] = _NONE,
    sample: dict[str, Any] | None = None,
    texts: Mapping[str, str] = _NONE,
    named: Mapping[str, dict[str, dict[str, str]]] = _NONE,
    numbers: Mapping[str, str] = _NONE,
    whole: Mapping[str, str] = _NONE,
    tensor: Mapping[str, list[str]] = _NONE,
    categories: Mapping[str, dict[str, Levels]] = _NONE,
    above: Mapping[str, dict[str, float]] = _NONE,
    origin: Mapping[str, dict[str, str]] = _NONE,
) -> pa.Table:
    """The rows of all files in order (a zip archive stands for the one file in it), spaces around values removed.

    Columns are called as the first line says, or, where the files have no such line, by `names`; `skip` gives the
    lines to leave out at the head of a file. Which rows: those whose column is none of `without`, within `between`
    (both ends included), and which miss no value of a field (an empty one, or one of `missing`); of these `sample`
    (`rows`, `seed`) draws so many by their place.

    Which fields, each from a column: `texts`; `named` (`{column: {value: text}}`); `numbers` (float64); `whole`
    (int64); `tensor` (float32, from several columns); `categories` (`{column: levels}`: the place of the value among
    the levels, where a level is a text or several that mean the same); `above` (`{column: bound}`: 1 where the number
    exceeds the bound, else 0); `origin` (`{file: text}`). Raises `BadData` where a column is absent, is no number, or
    has a value among no levels.
    """
    import pyarrow as pa

    tables = {name: _strings(name, path, names, skip.get(name, 0)) for name, path in files.items()}
    rows = _Rows(pa.concat_tables(tables.values()), ", ".join(files))
    for column, values in without.items():
        rows.keep(~rows.among(column, values))
    for column, (low, high) in between.items():
        rows.keep(~rows.among(column, ["", *missing]))
        found = rows.numbers(column)
        rows.keep((found >= low) & (found <= high))
    renamed, coded, bounds = (_columns(pins) for pins in (named, categories, above))
    used = [*texts.values(), *numbers.values(), *whole.values()]
    used += [column for columns in tensor.values() for column in columns]
    used += [column for column, _ in (*renamed.values(), *coded.values(), *bounds.values())]
    for column in dict.fromkeys(used):
        rows.keep(~rows.among(column, ["", *missing]))
    if sample:
        rows.draw(sample["rows"], sample["seed"])

    fields: dict[str, Any] = {field: rows.table[rows.place(column)] for field, column in texts.items()}
    for field, (column, meaning) in renamed.items():
        fields[field] = np.array(list(meaning.values()))[rows.codes(column, list(meaning))].tolist()
    fields |= {field: rows.numbers(column) for field, column in numbers.items()}
    fields |= {field: rows.whole(column) for field, column in whole.items()}
    for field, columns in tensor.items():
        fields[field] = tensor_column(np.column_stack([rows.numbers(name) for name in columns]).astype(np.float32))
    fields |= {field: rows.codes(column, levels) for field, (column, levels) in coded.items()}
    fields |= {field: (rows.numbers(column) > bound).astype(np.int64) for field, (column, bound) in bounds.items()}
    for field, meanings in origin.items():
        lengths = [table.num_rows for table in tables.values()]
        fields[field] = np.repeat([meanings[name] for name in tables], lengths)[rows.places].tolist()
    return pa.table(fields)


def _columns(pins: Mapping[str, dict[str, Any]]) -> dict[str, tuple[str, Any]]:
    """For each field its column, and what is said of it."""
    return {field: next(iter(pin.items())) for field, pin in pins.items()}


def _strings(name: str, path: Path, names: list[str] | None, skip: int) -> pa.Table:
    """A file's cells as text without surrounding spaces."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    content = path.read_bytes()
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.namelist()
            if len(members) != 1:
                raise BadData(f"{name} is a zip archive of {len(members)} files, and one is needed")
            content = archive.read(members[0])
    try:
        # A first pass tells the columns; a second reads each as text, so that no type is guessed.
        options = pa.csv.ReadOptions(column_names=names, skip_rows=skip)
        header = names or pa.csv.open_csv(io.BytesIO(content), read_options=options).schema.names
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False, null_values=[]
        )
        table = pa.csv.read_csv(io.BytesIO(content), read_options=options, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise BadData(f"{name}: not a readable CSV: {first_line(error)}") from error
    columns = [pc.utf8_trim_whitespace(column.combine_chunks()) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


class _Rows:
    """The rows that are kept so far, and which of the files' rows they are."""

    def __init__(self, table: pa.Table, where: str) -> None:
        self.table, self.where = table, where
        self.places: NDArray[np.int64] = np.arange(table.num_rows)

    def place(self, column: str) -> int:
        """The number of a column: of the first, where a header names one twice."""
        try:
            return int(self.table.column_names.index(column))
        except ValueError:
            raise BadData(f"{self.where}: no column {column!r} among {', '.join(self.table.column_names)}") from None

    def keep(self, which: NDArray[np.bool_]) -> None:
        self.table, self.places = self.table.filter(which), self.places[which]

    def draw(self, rows: int, seed: str) -> None:
        if rows > self.table.num_rows:
            raise BadDefinition(f"{self.where}: a sample of {rows} out of {self.table.num_rows} rows")
        chosen = np.sort(shuffled(seed, self.places.astype(np.uint64))[:rows])
        self.table, self.places = self.table.take(chosen), self.places[chosen]

    def among(self, column: str, values: list[str]) -> NDArray[np.bool_]:
        import pyarrow as pa
        import pyarrow.compute as pc

        found: NDArray[np.bool_] = pc.is_in(self.table[self.place(column)], pa.array(values, pa.string())).to_numpy()
        return found

    def numbers(self, column: str) -> NDArray[np.float64]:
        import pyarrow as pa

        try:
            values: NDArray[np.float64] = self.table[self.place(column)].cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid as error:
            raise BadData(f"{self.where}: column {column!r}: {first_line(error)}") from error
        return values

    def whole(self, column: str) -> NDArray[np.int64]:
        numbers = self.numbers(column)
        values = numbers.astype(np.int64)
        if not np.array_equal(values, numbers):
            raise BadData(f"{self.where}: column {column!r} holds numbers that are not whole")
        return values

    def codes(self, column: str, levels: Levels) -> NDArray[np.int64]:
        import pyarrow as pa
        import pyarrow.compute as pc

        meanings = [[level] if isinstance(level, str) else level for level in levels]
        known = {text: code for code, texts in enumerate(meanings) for text in texts}
        found = pc.index_in(self.table[self.place(column)], pa.array(list(known), pa.string()))
        if found.null_count:
            first = self.table[self.place(column)].filter(found.is_null())[0].as_py()
            raise BadData(f"{self.where}: column {column!r} holds {first!r}, which is none of its levels")
        codes: NDArray[np.int64] = np.array(list(known.values()), np.int64)[found.to_numpy()]
        return codes
