"""Infer the type of a column of a table whose file has no types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...core.errors import shorten_list
from ...splits.measures.times import NAIVE, ZONED, convert_to_utc
from ..readers._arrow_types import infer_field_type, to_stored_column
from ..readers._missing import NAN, find_missing
from ..readers._tensors import Ragged, find_item_type, to_tensors
from ..readers._typed import is_carried

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CLASSES = 20_000
MOST_INFERRED, ROWS_A_CLASS = 1_000, 5
"""A text label has classes if it has at most this many distinct texts, each in this many rows on average."""
_NUMBER = r"^[+-]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|inf(inity)?))$"
_INTEGER = r"^[+-]?(0|[1-9][0-9]{0,18})(\.0+)?$"
_LONG = r"^[+-]?[0-9]{16,}(\.0*)?$"
"""Integers with so many digits that float64, or int64, may not represent them exactly."""
_LIST = r"^\[[\s\d.,eE+\-\[\]]*\]$"
_LIST_WITH_HOLES = r"^\[[\s\d.,eE+\-\[\]]*((null|NaN)[\s\d.,eE+\-\[\]]*)+\]$"
_COMMA = r"^[+-]?[0-9]+(,[0-9]+)?$"
_MARKS = ("na", "n/a", "null", "none", "nil", "-", "--", "?", ".", "missing", "unknown", "#n/a")
"""Common marks of a missing number."""


class TypeInference:
    """The inferred type of a column, as far as it has been read. A number with a leading zero ("007") is text, and so
    is a column without values. Integers are text if one is too long for int64 (or for float64, if others have a
    fraction): `inexact` is the first. NaN is a missing value among numbers, and a word among words."""

    def __init__(self, ignored: Iterable[str] = ("",), decimal: str = ".") -> None:
        self.texts: dict[str, int] = {}
        """The distinct texts, each with its number of rows; incomplete beyond `MOST_CLASSES`."""
        self._ignored, self._decimal = sorted(ignored), decimal
        self._fits = {"bool": True, "int64": True, "float64": True}
        self._own, self._seen, self._valued = "", 0, 0
        self.inexact, self._forms = "", set[bool]()
        self.zones: set[bool] = set()
        """Whether times have a zone, as long as all texts have been times."""
        self._times = True
        self._shapes: set[tuple[int, ...]] = set()
        self._item = ""
        self._all_lists = True

    @classmethod
    def of(cls, texts: Iterable[str]) -> TypeInference:
        import pyarrow as pa

        guess = cls()
        guess.look(pa.chunked_array([pa.array(list(texts), pa.string())]))
        return guess

    def look(self, column: pa.ChunkedArray) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = to_stored_column(column)
        if find_item_type(column.type):
            self._own = self._lists(column.filter(~find_missing(column, nan=False)), find_item_type(column.type))
            return
        if not pa.types.is_string(column.type):
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
        for kind, pattern in (("bool", r"^(?i:true|false)$"), ("int64", _INTEGER), ("float64", _NUMBER)):
            if self._fits[kind]:
                fits = pc.all(pc.match_substring_regex(values, pattern)).as_py()
                self._fits[kind] = fits is not False
        if self._fits["float64"]:
            self._look_at_long(values)

    def _look_at_long(self, numbers: pa.ChunkedArray) -> None:
        """Whether integers are too long for int64 or float64. A column with numbers written as 3.0 is read as float64,
        which does not represent longer ones exactly."""
        import pyarrow as pa
        import pyarrow.compute as pc

        long = numbers.filter(pc.match_substring_regex(numbers, _LONG))
        if pc.any(pc.match_substring(numbers, ".")).as_py():
            self._forms.add(False)
        if not len(long):
            return
        try:
            self._forms |= {True} if pc.any(pc.greater(pc.abs(long.cast(pa.int64())), 2**53)).as_py() else set()
        except pa.ArrowInvalid:
            self._fits["int64"] = False
        if not self.inexact:
            self.inexact = next((text for text in long.to_pylist() if not is_carried(text)), "")

    def _lists(self, column: pa.ChunkedArray, item: str) -> str:
        """The type of a column of lists of numbers: a tensor, or text if their shapes differ."""
        if self._own == "string":
            return "string"
        try:
            self._shapes.add(to_tensors(column)[1])
        except Ragged:
            return "string"
        (shape, *others) = self._shapes
        return "string" if others or 0 in shape else f"{item}[{','.join(map(str, shape))}]"

    @property
    def almost_numbers(self) -> str:
        """How to read a text column with mostly numeric texts as numbers; "" if that is not possible."""
        if self.type != "string":
            return ""
        if self.inexact and self._fits["float64"]:
            return (
                f"int64 and float64 do not represent {self.inexact} exactly: if the values are not ids and may be "
                'rounded, set types = { .. = "float64" }'
            )
        if len(self.texts) > MOST_CLASSES:
            return ""
        if (
            self.texts
            and all(re.match(_COMMA, text) for text in self.texts)
            and any("," in text for text in self.texts)
        ):
            return 'its numbers have a comma: if that is the decimal mark, set options = { decimal = "," }'
        marks = sorted(text for text in self.texts if not re.match(_NUMBER, text))
        if 0 < len(marks) < len(self.texts) and all(mark.lower() in _MARKS for mark in marks):
            named = shorten_list(list(map(repr, marks)))
            return f"its numbers have {named} among them: set options = {{ missing = {json.dumps(marks)} }}"
        return ""

    def _look_for_lists(self, values: pa.ChunkedArray) -> None:
        """Whether texts are JSON lists of numbers, all of one shape."""
        import pyarrow as pa
        import pyarrow.compute as pc

        holes = pc.match_substring_regex(values, _LIST_WITH_HOLES)
        values = values.filter(pc.invert(holes))
        if self._all_lists and not len(values) and pc.any(holes).as_py():
            return
        if self._all_lists and pc.all(pc.match_substring_regex(values, _LIST)).as_py() is not False and len(values):
            try:
                column = pa.chunked_array([pa.array([json.loads(text) for text in values.to_pylist()])])
                item = find_item_type(column.type)
                self._item = "float32" if "float32" in (item, self._item) else item
                self._shapes.add(to_tensors(column)[1])
                return
            except (ValueError, OverflowError):  # not JSON, or ragged (pa.ArrowInvalid and Ragged are ValueErrors)
                pass
        self._all_lists = self._all_lists and not len(values)

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
        if (
            self._all_lists
            and len(self._shapes) == 1
            and 0 not in min(self._shapes)
            and self._item in ("int64", "float32")
        ):
            return f"{self._item}[{','.join(map(str, min(self._shapes)))}]"
        if not self._seen:
            return "string"
        if not self._valued:
            return "float64"  # only NaN
        fits = self._fits | {"int64": self._fits["int64"] and len(self._forms) < 2}
        return next((kind for kind, fit in fits.items() if fit and not (kind == "float64" and self.inexact)), "string")
