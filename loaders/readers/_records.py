"""JSON as columns of text: one record a line, or a list of records. What is no text is its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BadData, first_line, some_of
from ._cells import Cells
from ._inputs import Input
from ._separated import Wanted
from ._text import TextForm
from ._typed import is_carried

if TYPE_CHECKING:
    import pyarrow as pa

KEY = "key"
"""The column of a record's key, where records are the values of an object."""

_ROWS = 1 << 16
_LONG, _WHOLE = re.compile(rb"[0-9]{16}\.0"), re.compile(r"-?[0-9]{16,}\.0+")

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""How JSON writes halves of characters, which are text in pairs only."""


def read_lines(source: Input, text: TextForm, wanted: Wanted) -> Iterator[Cells]:
    """The records of a file of one a line, in blocks; `BadData` with the line that is none."""
    yield from _cells(source, _parsed_lines(source, text), wanted, partial(_line, source, text))


def _parsed_lines(source: Input, text: TextForm) -> Iterator[dict[str, Any]]:
    for block in text.blocks(source):
        parse = _parser(block)
        for line in block.split(b"\n"):
            if not line or line.isspace():
                continue
            try:
                record = _parsed(line, parse)
            except ValueError as error:
                raise _bad_line(source, text) or BadData(f"{source.name}: {first_line(error)}") from error
            if not isinstance(record, dict):
                raise _bad_line(source, text) or BadData(f"{source.name}: a line is no JSON object")
            yield record


def _parsed(content: str | bytes, parse: Callable[..., Any] = json.loads) -> Any:
    """JSON as Python values; `ValueError` where it is none, or has what no text can hold."""
    try:
        value = parse(content)
        if _HALF.search(content.encode() if isinstance(content, str) else content):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError(
            f"\\u{ord(error.object[error.start]):04x} is half of a character (a lone surrogate)"
        ) from error
    return value


def _bad_line(source: Input, text: TextForm) -> BadData | None:
    """The first line that is no record, looked for slowly."""
    for number, line in text.lines(source):
        if not line.strip():
            continue
        try:
            if not isinstance(_parsed(line), dict):
                return BadData(f"{source.name}, line {number}: {line.strip()[:40]!r} is no JSON object")
        except ValueError as error:
            return BadData(f"{source.name}, line {number}: not JSON: {first_line(error)}")
    return None


def _line(source: Input, text: TextForm, row: int) -> str:
    full = (number for number, line in text.lines(source) if line.strip())
    return f"line {next(islice(full, row, None), row + 1)}"


def read_list(source: Input, text: TextForm, at: str, wanted: Wanted) -> Iterator[Cells]:
    """The records of a JSON file: a list of them, or an object of them (its keys are a column then). `at` is the way
    to them from the top (`data.examples`). `BadData` where there are none."""
    content = b"".join(text.blocks(source))
    try:
        found = _parsed(content, _parser(content))
    except ValueError as error:
        raise BadData(f"{source.name}: not JSON: {first_line(error)}") from error
    for step in filter(None, at.split(".")):
        if not isinstance(found, dict) or step not in found:
            known = f" (there is {some_of(list(found))})" if isinstance(found, dict) else ""
            raise BadData(f"{source.name}: there is no {step!r} on the way that `records` says, {at}{known}")
        found = found[step]
    if isinstance(found, dict) and found and all(isinstance(record, dict) for record in found.values()):
        found = [{KEY: key, **record} for key, record in found.items()]
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        inside = [name for name, value in found.items() if isinstance(value, list)] if isinstance(found, dict) else []
        path = ".".join(filter(None, (at, *inside[:1]))) or ".."
        raise BadData(
            f"{source.name} is no list of records: say where in it they are by options = {{ records = "
            f"{json.dumps(path, ensure_ascii=False)} }}"
        )
    yield from _cells(source, found, wanted, lambda row: f"record {row + 1}")


def _parser(content: bytes) -> Callable[[bytes], Any]:
    """What parses this content. Whole numbers written with a point ("12345678901234567.0") stay as they are written
    where float64 does not carry them."""
    return partial(json.loads, parse_float=_float) if _LONG.search(content) else json.loads


def _float(text: str) -> float | str:
    return text if _WHOLE.fullmatch(text) and not is_carried(text) else float(text)


def _cells(source: Input, records: Iterable[dict[str, Any]], wanted: Wanted, locate: Any) -> Iterator[Cells]:
    import pyarrow as pa

    left, done = iter(records), 0
    names: list[str] = []
    while batch := list(islice(left, _ROWS)):
        # A record may lack what it has no value for: columns are those that any record has had so far.
        names = list(dict.fromkeys([*names, *(path for record in batch for path in _paths(record))]))
        columns = {}
        for place in sorted(wanted(names)):
            steps = names[place].split(".") if names[place] not in batch[0] else [names[place]]
            columns[str(place)] = pa.array([_text(_value(record, steps)) for record in batch], pa.string())
        rows = np.arange(done, done + len(batch))
        yield Cells(source.name, names, _table(columns, len(batch)), rows, locate)
        done += len(batch)


def _table(columns: dict[str, pa.Array], rows: int) -> pa.Table:
    import pyarrow as pa

    return pa.table(columns or {"": pa.nulls(rows)})


def _paths(record: dict[str, Any]) -> Iterator[str]:
    """The names of a record's values; those of an object in it by both names, with a dot."""
    for name, value in record.items():
        yield name
        if isinstance(value, dict):
            for path in _paths(value):
                yield f"{name}.{path}"


def _value(record: Any, steps: list[str]) -> Any:
    for step in steps:
        record = record.get(step) if isinstance(record, dict) else None
    return record


def _text(value: Any) -> str | None:
    """A value as text: a text itself, numbers in their shortest form, lists and objects as JSON without spaces."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
