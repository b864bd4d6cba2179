"""The type of a field of the user's own data: inferred from texts, or that of typed columns in one file or several."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from ...core.documents import parse_json
from ...core.errors import BadDefinition, shorten_list
from ...splits.measures.words import NAIVE, ZONED, convert_to_utc
from ..batching.encoded import find_media_type
from ..readers._arrow_types import (
    NO_VALUES,
    NotExact,
    Ragged,
    describe_remedy,
    describe_type,
    find_common_type,
    find_item_type,
    has_encoded_files,
    infer_field_type,
    to_item,
    to_stored_column,
    to_stored_type,
    to_tensors,
)
from ..readers._cells import NAN, find_missing, is_carried
from .labels import MOST_CLASSES, MOST_INFERRED, ROWS_A_CLASS

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER = r"^[+-]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|inf(inity)?))$"
_INTEGER = r"^[+-]?(0|[1-9][0-9]{0,18})(\.0+)?$"
_LONG = r"^[+-]?[0-9]{16,}(\.0*)?$"
"""Integers with so many digits that float64, or int64, may not represent them exactly."""
_LIST = r"^\[[\s\d.,eE+\-\[\]]*\]$"
_LIST_WITH_HOLES = r"^\[[\s\d.,eE+\-\[\]]*((null|NaN)[\s\d.,eE+\-\[\]]*)+\]$"
_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
_PADDED = r"^[+-]?0[0-9]+(\.[0-9]*)?$"
_PATTERNS = {"bool": r"^(?i:true|false)$", "int64": _INTEGER, "float64": _NUMBER}
"""The pattern of the texts of each type, the narrowest type first."""
_MARKS = ("na", "n/a", "null", "none", "nil", "-", "--", "?", ".", "missing", "unknown", "#n/a")
"""Common marks of a missing number."""

LISTS = "[]"
"""The suffix of the type of a column of lists before their shape is known."""
ENCODED = "encoded"
"""The type of a column of encoded files before their kind is known."""


class TypeInference:
    """The inferred type of a column, as far as it has been read. A number with a leading zero ("007") is text, and so
    is a column without values. Integers are text if one is too long for int64 (or for float64, if others have a
    fraction): `inexact` is the first. NaN is a missing value among numbers, and a word among words."""

    def __init__(self, ignored: Iterable[str] = ("",), decimal: str = ".") -> None:
        self.texts: dict[str, int] = {}
        """The distinct texts, each with its number of rows; incomplete beyond `MOST_CLASSES`."""
        self._ignored, self._decimal = sorted(ignored), decimal
        self._fits = dict.fromkeys(_PATTERNS, True)
        self._own, self._seen, self._valued = "", 0, 0
        self.inexact, self._has_points, self._has_large = "", False, False
        self._too_long = ""
        """The first integer that int64 does not hold."""
        self.zones: set[bool] = set()
        """Whether times have a zone, as long as all texts have been times."""
        self._times = self._all_lists = True
        self._shapes: set[tuple[int, ...]] = set()
        self._item = ""

    @classmethod
    def of(cls, texts: Iterable[str]) -> TypeInference:
        import pyarrow as pa

        guess = cls()
        guess.look(pa.chunked_array([pa.array(list(texts), pa.string())]))
        return guess

    def look(self, column: pa.ChunkedArray, texts: bool = True) -> None:
        """Take more values into account; of a typed column, whose texts decide nothing, only its type."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = to_stored_column(column)
        if find_item_type(column.type):
            self._own = self._find_tensor_type(column.filter(~find_missing(column, nan=False)))
            return
        if not texts or not pa.types.is_string(column.type):
            self._own = infer_field_type(column.type) or "string"
            return
        values = column.drop_null()
        values = values.filter(pc.invert(pc.is_in(values, pa.array(self._ignored, pa.string()))))
        if len(self.texts) <= MOST_CLASSES:
            for text, rows in zip(*(array.to_pylist() for array in pc.value_counts(values).flatten()), strict=True):
                self.texts[text] = self.texts.get(text, 0) + rows
        self._seen += len(values)
        self._look_for_times(values)
        self._look_for_lists(values)
        values = values.filter(pc.invert(pc.match_substring_regex(values, NAN)))
        self._valued += len(values)
        if self._decimal != ".":
            values = pc.replace_substring(values, self._decimal, ".")
        for kind, pattern in _PATTERNS.items():
            self._fits[kind] &= pc.all(pc.match_substring_regex(values, pattern)).as_py() is not False
        if self._fits["float64"]:
            self._look_for_long_integers(values)

    def _look_for_long_integers(self, numbers: pa.ChunkedArray) -> None:
        """Whether integers are too long for int64 or float64. A column with numbers written as 3.0 is read as float64,
        which does not represent longer ones exactly."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self._has_points |= pc.any(pc.match_substring(numbers, ".")).as_py() is True
        long = numbers.filter(pc.match_substring_regex(numbers, _LONG))
        try:
            self._has_large |= pc.any(pc.greater(pc.abs(long.cast(pa.int64())), 2**53)).as_py() is True
        except pa.ArrowInvalid:
            self._fits["int64"] = False
            beyond = (text for text in long.to_pylist() if "." not in text and not _fits_int64(text))
            self._too_long = self._too_long or next(beyond, "")
        if not self.inexact:
            self.inexact = next((text for text in long.to_pylist() if not is_carried(text)), "")

    def _find_tensor_type(self, column: pa.ChunkedArray) -> str:
        """The type of a column of lists of numbers: a tensor, or text if their shapes differ."""
        try:
            self._shapes.add(to_tensors(column)[1])
        except Ragged:
            return "string"
        return "string" if self._own == "string" else self._format_tensor_type(find_item_type(column.type)) or "string"

    def _format_tensor_type(self, item: str) -> str:
        """The type of tensors if all lists have the same shape, else empty."""
        (shape, *others) = self._shapes
        return "" if others or 0 in shape else f"{item}[{','.join(map(str, shape))}]"

    def explain_text(self, field: str, role: str) -> str:
        """Say why a column in which most texts are numbers, or in a `meta` field times, is text, and what to do; "" if
        it is not such a column."""
        if self.type != "string" or self.looks_like_times or not 0 < len(self.texts) <= MOST_CLASSES:
            return ""
        explanation = self._explain_numbers(field)
        return self._explain_times(field) if not explanation and role == "meta" else explanation

    def _explain_numbers(self, field: str) -> str:
        others = sorted(text for text in self.texts if not re.match(_NUMBER, text))
        padded = [text for text in others if re.match(_PADDED, text)]
        words = [text for text in others if text not in padded and not re.match(_COMMA, text)]
        if not 2 * len(words) < len(self.texts):
            return ""
        if not others:
            rounds = f'types = {{ {field} = "float64" }} rounds them'
            return f"numbers such as {self._too_long or self.inexact!r} would be rounded: {rounds}"
        if padded == others:
            kind = "float64" if any("." in text for text in self.texts) else "int64"
            reads = f'types = {{ {field} = "{kind}" }} reads it as numbers'
            return f"numbers such as {padded[0]!r} begin with a zero: {reads}"
        named = shorten_list(list(map(repr, others)))
        return f"most of its values are numbers, but not {named}: set `missing` or `decimal` in options, or `types`"

    def _explain_times(self, field: str) -> str:
        others = sorted(text for text in self.texts if not _is_time(text))
        if not 2 * sum(self.texts[text] for text in others) < self._seen:
            return ""
        if not others:
            return "its times have a zone in some rows and none in others: use one form for all"
        named = shorten_list(list(map(repr, others)))
        locates = f'types = {{ {field} = "timestamp" }} names the line'
        return f"most of its values are times, but not {named}: correct it or set `missing` in options; {locates}"

    def _look_for_lists(self, values: pa.ChunkedArray) -> None:
        """Whether texts are JSON lists of numbers, all of one shape. Those with missing numbers are passed over."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = values.filter(pc.invert(pc.match_substring_regex(values, _LIST_WITH_HOLES)))
        if not self._all_lists or not len(values):
            return
        try:
            if pc.all(pc.match_substring_regex(values, _LIST)).as_py() is False:
                raise ValueError
            column = pa.chunked_array([pa.array([parse_json(text) for text in values.to_pylist()])])
            item = find_item_type(column.type)
            self._item = "float32" if "float32" in (item, self._item) else item
            self._shapes.add(to_tensors(column)[1])
        except (ValueError, OverflowError):  # not JSON, or ragged (pa.ArrowInvalid and Ragged are ValueErrors)
            self._all_lists = False

    def _look_for_times(self, values: pa.ChunkedArray) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        for pattern, zoned in ((ZONED, True), (NAIVE, False)):
            its = values.filter(pc.match_substring_regex(values, pattern)) if self._times else values[:0]
            if len(its):
                self.zones.add(zoned)
            if len(its) == len(values):
                try:
                    convert_to_utc(its)
                except pa.ArrowInvalid:  # for example the 31st of June
                    break
                return
        self._times = False

    @property
    def looks_like_times(self) -> bool:
        """Whether all values are ISO 8601 times, either all with a zone or all without."""
        return self._own == "timestamp" or (self._times and self._seen > 0 and len(self.zones) == 1)

    @property
    def why_no_classes(self) -> str:
        """Why the texts are not classes; "" if they are few and each is in several rows. Numbers may be among them
        ("0", "1", "2+"), unless the other texts look like typing errors or marks of missing values."""
        count, most = len(self.texts), min(MOST_INFERRED, self._seen // ROWS_A_CLASS)
        if not 0 < count <= most:
            number = f"over {MOST_CLASSES:,}" if count > MOST_CLASSES else f"{count:,}"
            return f"{number} distinct texts in {self._seen:,} rows"
        others = {text: rows for text, rows in self.texts.items() if not re.match(_NUMBER, text)}
        rare = [text for text, rows in others.items() if rows < ROWS_A_CLASS or text.lower() in _MARKS]
        if rare and len(others) < count:
            return f"{shorten_list(list(map(repr, sorted(rare))))} among its numbers"
        return ""

    @property
    def type(self) -> str:
        return self._own or self.text_type

    @property
    def text_type(self) -> str:
        """The inferred type of the values that are texts."""
        tensor = self._format_tensor_type(self._item) if self._all_lists and self._shapes else ""
        if tensor and self._item in ("int64", "float32"):
            return tensor
        if not self._seen:
            return "string"
        if not self._valued:
            return "float64"  # only NaN
        fits = self._fits | {"int64": self._fits["int64"] and not (self._has_points and self._has_large)}
        return next((kind for kind, fit in fits.items() if fit and not (kind == "float64" and self.inexact)), "string")


def _fits_int64(integer: str) -> bool:
    return len(integer) <= 20 and -(2**63) <= int(integer) < 2**63


def _is_time(text: str) -> bool:
    import pyarrow as pa

    try:
        convert_to_utc(pa.chunked_array([[text]]))
    except pa.ArrowInvalid:  # for example the 31st of June
        return False
    return bool(re.match(ZONED, text) or re.match(NAIVE, text))


def infer_column_type(kind: pa.DataType) -> str:
    """Return a field's type for a column type: a scalar type, an item type and `LISTS`, `ENCODED`, `NO_VALUES`, or
    ""."""
    if has_encoded_files(kind):
        return ENCODED
    item = find_item_type(to_stored_type(kind))
    return f"{item}{LISTS}" if item else infer_field_type(kind)


class TypedColumn:
    """A field's column in files that have types, as far as it has been read."""

    def __init__(self, field: str, column: str | list[str]) -> None:
        self._field, self._column = field, column
        self._kinds: dict[str, pa.DataType] = {}
        self._media = ""
        self._inexact: tuple[str, pa.DataType] | None = None
        """A value that float64 does not represent exactly, and its type."""

    def look(self, file: str, column: pa.ChunkedArray) -> None:
        import pyarrow.compute as pc

        self._kinds.setdefault(file, column.type)
        kind = infer_column_type(column.type)
        if kind == ENCODED and not self._media:  # by the first bytes of the first file
            first = next((value.as_py() for value in pc.struct_field(column, "bytes") if value.is_valid), b"")
            self._media = "audio" if find_media_type(first).startswith("audio/") else "image"
        elif kind in ("int64", "float64") and self._inexact is None:
            try:
                to_item(column, "float64")
            except NotExact as error:
                self._inexact = f"{file}: {self._field} is {error}", column.type

    def settle(self, guess: TypeInference, untyped: str) -> str:
        """Return the type that holds the values of all files. Raises `BadDefinition`, which names file, column and
        remedy, if there is none. `untyped`: the name of a file without types, if there is one."""
        import pyarrow as pa

        kinds = self._kinds | ({untyped: pa.string()} if untyped else {})
        types = {file: infer_column_type(kind) for file, kind in kinds.items()}
        types |= {untyped: guess.text_type} if untyped else {}
        first, remedy, common = next(iter(kinds)), describe_remedy(self._field), find_common_type(types.values())
        for file, kind in kinds.items():
            if not types[file]:
                own_remedy = describe_remedy(self._field, kind)
                if pa.types.is_struct(kind):
                    own_remedy += f', or a part of it by its name ("{self._column}.{kind.field(0).name}")'
                self._refuse(file, f"is {describe_type(kind)}, which no field type supports", own_remedy)
            if not common and types[file] != types[first]:
                differ = f"is {describe_type(kind)}, but {describe_type(kinds[first])} in {first}"
                self._refuse(file, differ, f"{remedy}, or use one type in all files")
        if common == NO_VALUES:
            self._refuse(first, "has no values", f"remove {self._field!r}")
        zones = {bool(getattr(to_stored_type(kind), "tz", None)): file for file, kind in reversed(kinds.items())}
        if common == "timestamp" and len(zones) > 1:
            differ = f"has times without a zone, but {zones[True]} with one"
            self._refuse(zones[False], differ, f"use one form, or {remedy}")
        if common == "float64" and self._inexact:
            raise BadDefinition(f"[data] {self._inexact[0]}: {describe_remedy(self._field, self._inexact[1])}")
        if not common.endswith(LISTS):
            return self._media if common == ENCODED else common
        _, _, shape = guess.type.partition("[")
        if not shape:
            what = "has lists of several lengths, or with missing values"
            self._refuse(first, what, f"pad them to one length, or {remedy}")
        return f"{common.removesuffix(LISTS)}[{shape}"

    def _refuse(self, file: str, what: str, remedy: str) -> NoReturn:
        raise BadDefinition(f"[data] {file}: column {self._column!r} {what}: {remedy}")

    def column_for(self, kind: str) -> str | list[str]:
        """Return the column from which a field of a type is read."""
        encoded = any(infer_column_type(stored_kind) == ENCODED for stored_kind in self._kinds.values())
        return f"{self._column}.bytes" if encoded and kind in ("image", "audio", "bytes") else self._column
