"""Columns as rules read them: texts and their words, names, numbers, and times in UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.engines import map_in_threads
from ...core.errors import BadDefinition, UnknownName

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE = 1 << 17


def read_text_column(table: pa.Table, field: str) -> pa.ChunkedArray:
    """Return the text column `field`; an error lists the columns."""
    return _get_column(table, field, ("string", "large_string"), "text")


def read_names_column(table: pa.Table, field: str) -> pa.ChunkedArray:
    """Return the column `field` as group names: text unchanged, integers and booleans as text (`2018`, `true`)."""
    import pyarrow as pa

    kinds = ("string", "large_string", "int64", "uint64", "bool")
    return _get_column(table, field, kinds, "names: text or whole numbers").cast(pa.string())


def read_names(table: pa.Table, field: str) -> NDArray[np.str_]:
    """Return the names of `read_names_column`, shape (rows,)."""
    return np.asarray(read_names_column(table, field).to_pylist(), np.str_)


def read_numeric_column(table: pa.Table, field: str) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return the number column `field`, shape (rows,)."""
    values: NDArray[np.int64] | NDArray[np.float64] = _get_column(
        table, field, ("int64", "double"), "numbers"
    ).to_numpy()
    return values


def read_time_column(table: pa.Table, field: str) -> NDArray[np.datetime64]:
    """Return the timestamp column `field`, shape (rows,), in microseconds, UTC."""
    needs = "a timestamp: write times as 2024-05-31 or 2024-05-31T12:30:00Z (for years as numbers: time/cutoff)"
    values: NDArray[np.datetime64] = _get_column(table, field, ("timestamp[us]",), needs).to_numpy()
    return values


def _get_column(table: pa.Table, field: str, kinds: tuple[str, ...], needs: str) -> pa.ChunkedArray:
    if field not in table.column_names:
        raise UnknownName("field", field, table.column_names)
    if (kind := str(table[field].type)) not in kinds:
        hint = " (of times: time/before)" if kind == "timestamp[us]" else ""
        raise BadDefinition(f"field {field!r} is {kind}, and the rule needs {needs}{hint}")
    return table[field]


def format_names(values: Iterable[object]) -> list[str]:
    """Format the names in a definition (`2018` or `"2018"`, `true` or `"true"`) as `read_names_column` does."""
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def count_words(table: pa.Table, field: str) -> NDArray[np.int64]:
    """Count the space-separated words in each row, shape (rows,)."""
    import pyarrow.compute as pc

    def count(texts: pa.ChunkedArray) -> NDArray[np.int64]:
        trimmed = pc.utf8_trim_whitespace(texts)
        words = pc.list_value_length(pc.utf8_split_whitespace(trimmed)).to_numpy().astype(np.int64)
        return np.where(pc.equal(trimmed, "").to_numpy(zero_copy_only=False), 0, words)

    return _count_by_piece(read_text_column(table, field), count)


def count_occurrences(table: pa.Table, field: str, word: str) -> NDArray[np.int64]:
    """Count the occurrences of `word` as a whole word in each row, shape (rows,)."""
    import pyarrow.compute as pc

    def count(texts: pa.ChunkedArray) -> NDArray[np.int64]:
        padded = pc.binary_join_element_wise("", pc.replace_substring(texts, " ", "  "), "", " ")
        counts: NDArray[np.int64] = pc.count_substring(padded, f" {word} ").to_numpy().astype(np.int64)
        return counts

    return _count_by_piece(read_text_column(table, field), count)


def _count_by_piece(texts: pa.ChunkedArray, count: Callable[[pa.ChunkedArray], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Apply `count` chunk by chunk, so that memory holds the words of one chunk only."""
    pieces = map_in_threads(lambda start: count(texts.slice(start, _PIECE)), range(0, len(texts), _PIECE))
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)


def group_by_word(table: pa.Table, words: list[str] | None, field: str | None = None) -> NDArray[np.str_] | None:
    """Return for each row the first of `words` that occurs in `field` (or in the first text column), or "none"."""
    if words is None:
        return None
    texts = [name for name in table.column_names if str(table[name].type) in ("string", "large_string")]
    where = field or texts[0]
    group = np.full(table.num_rows, "none", dtype=f"U{max(4, *map(len, words))}")
    for word in reversed(words):
        group[count_occurrences(table, where, word) > 0] = word
    return group


ZONED = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:?\d{2})?)$"
NAIVE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?$"
"""Times in ISO 8601, with a zone or an offset, and without."""


def convert_to_utc(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert ISO 8601 texts, dates, and times of any unit and zone to `timestamp[us]`: times with a zone are converted
    to UTC, others are unchanged; the machine's zone has no effect. Raises `pyarrow.ArrowInvalid` for invalid times, for
    a column of texts with and without a zone, and for fractions of a microsecond."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type):
        zoned = pc.any(pc.match_substring_regex(column, ZONED)).as_py()
        column = column.cast(pa.timestamp("us", "UTC") if zoned else pa.timestamp("us"))
    return column.cast(pa.timestamp("us"))


def parse_moment(text: str, name: str) -> np.datetime64:
    """Parse a time in ISO 8601 from a definition; `name` is its parameter."""
    import pyarrow as pa

    try:
        return np.datetime64(convert_to_utc(pa.chunked_array([[text]], pa.string()))[0].value, "us")
    except pa.ArrowInvalid as error:
        raise BadDefinition(f"{name} = {text!r}: write a time as 2024-05-31 or 2024-05-31T12:30:00Z") from error
