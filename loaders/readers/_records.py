"""JSON records as columns of text: one record per line, or a list of records. Values that are not strings become their
JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.errors import BadData, get_first_line, shorten_list
from ._cells import Cells
from ._inputs import Input
from ._separated import ColumnSelector
from ._text import TextForm
from ._typed import is_carried

KEY = "key"
"""The column with a record's key if records are the values of an object."""

_ROWS = 1 << 16
_LONG, _INTEGRAL = re.compile(rb"[0-9]{16}\.0"), re.compile(r"-?[0-9]{16,}\.0+")

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""JSON's escapes of surrogates, which are text only in pairs."""


def read_lines(source: Input, text: TextForm, select_columns: ColumnSelector) -> Iterator[Cells]:
    """Read a file of one record per line, in blocks. Raises `BadData` with the first line that is not a record."""
    yield from _iterate_cells(source, _parse_lines(source, text), select_columns, partial(_locate_line, source, text))


def _parse_lines(source: Input, text: TextForm) -> Iterator[dict[str, Any]]:
    for block in text.blocks(source):
        parse = _choose_parser(block)
        for line in block.split(b"\n"):
            if not line or line.isspace():
                continue
            try:
                record = _parse_json(line, parse)
            except ValueError as error:
                raise _find_bad_line(source, text) or BadData(f"{source.name}: {get_first_line(error)}") from error
            if not isinstance(record, dict):
                raise _find_bad_line(source, text) or BadData(f"{source.name}: a line is not a JSON object")
            yield record


def _parse_json(content: str | bytes, parse: Callable[..., Any] = json.loads) -> Any:
    """Parse JSON. Raises `ValueError` if it is not valid, or has a string that cannot be encoded as text."""
    try:
        value = parse(content)
        if _HALF.search(content.encode() if isinstance(content, str) else content):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"\\u{ord(error.object[error.start]):04x} is not a character (a lone surrogate)") from error
    return value


def _find_bad_line(source: Input, text: TextForm) -> BadData | None:
    """Find the first line that is not a record, line by line."""
    for number, line in text.lines(source):
        if not line.strip():
            continue
        try:
            if not isinstance(_parse_json(line), dict):
                return BadData(f"{source.name}, line {number}: {line.strip()[:40]!r} is not a JSON object")
        except ValueError as error:
            return BadData(f"{source.name}, line {number}: not JSON: {get_first_line(error)}")
    return None


def _locate_line(source: Input, text: TextForm, row: int) -> str:
    full = (number for number, line in text.lines(source) if line.strip())
    return f"line {next(islice(full, row, None), row + 1)}"


def read_list(source: Input, text: TextForm, at: str, select_columns: ColumnSelector) -> Iterator[Cells]:
    """Read the records of a JSON file: a list of records, or an object of records (whose keys become a column). `at` is
    the path to them from the top (`data.examples`). Raises `BadData` if there are no records."""
    content = b"".join(text.blocks(source))
    try:
        document = _parse_json(content, _choose_parser(content))
    except ValueError as error:
        raise BadData(f"{source.name}: not JSON: {get_first_line(error)}") from error
    for step in filter(None, at.split(".")):
        if not isinstance(document, dict) or step not in document:
            known = f" (the keys are {shorten_list(list(document))})" if isinstance(document, dict) else ""
            raise BadData(f"{source.name}: no {step!r} on the path `records`, {at}{known}")
        document = document[step]
    if isinstance(document, dict) and document and all(isinstance(record, dict) for record in document.values()):
        document = [{KEY: key, **record} for key, record in document.items()]
    if not isinstance(document, list) or not all(isinstance(record, dict) for record in document):
        inside = (
            [name for name, value in document.items() if isinstance(value, list)] if isinstance(document, dict) else []
        )
        path = ".".join(filter(None, (at, *inside[:1]))) or ".."
        raise BadData(
            f"{source.name} is not a list of records: give the path to them with options = {{ records = "
            f"{json.dumps(path, ensure_ascii=False)} }}"
        )
    yield from _iterate_cells(source, document, select_columns, lambda row: f"record {row + 1}")


def _choose_parser(content: bytes) -> Callable[[bytes], Any]:
    """Choose the parser for this content. Whole numbers with a decimal point ("12345678901234567.0") stay text if they
    are not exact in float64."""
    return partial(json.loads, parse_float=_parse_float) if _LONG.search(content) else json.loads


def _parse_float(text: str) -> float | str:
    return text if _INTEGRAL.fullmatch(text) and not is_carried(text) else float(text)


def _iterate_cells(
    source: Input, records: Iterable[dict[str, Any]], select_columns: ColumnSelector, locate: Any
) -> Iterator[Cells]:
    remaining, done = iter(records), 0
    names: list[str] = []
    while batch := list(islice(remaining, _ROWS)):
        # Records may omit keys without a value: the columns are the keys of all records so far.
        names = list(dict.fromkeys([*names, *(path for record in batch for path in _iterate_paths(record))]))
        columns = {}
        for index in sorted(select_columns(names)):
            steps = names[index].split(".") if names[index] not in batch[0] else [names[index]]
            columns[str(index)] = pa.array([_format_value(_get_value(record, steps)) for record in batch], pa.string())
        rows = np.arange(done, done + len(batch))
        yield Cells(source.name, names, _make_table(columns, len(batch)), rows, locate)
        done += len(batch)


def _make_table(columns: dict[str, pa.Array], rows: int) -> pa.Table:
    return pa.table(columns or {"": pa.nulls(rows)})


def _iterate_paths(record: dict[str, Any]) -> Iterator[str]:
    """Return the names of a record's values; values of a nested object have both names, joined by a dot."""
    for name, value in record.items():
        yield name
        if isinstance(value, dict):
            for path in _iterate_paths(value):
                yield f"{name}.{path}"


def _get_value(record: Any, steps: list[str]) -> Any:
    for step in steps:
        record = record.get(step) if isinstance(record, dict) else None
    return record


def _format_value(value: Any) -> str | None:
    """Format a value as text: strings unchanged, numbers in their shortest form, lists and objects as compact JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
