"""What a draft says of data of the user's own: its `[data]` table, and what is found out about them.

[data]
hub = "owner/name"              # a data set of the Hub (with `revision`, a branch or commit); or leave it out
files = ["data/*.csv"]          # CSV, TSV, JSON, JSON lines or Parquet, compressed or not: of that data set, or of this
                                # machine, beside the draft
images = "photos/{domain}/{category}/{file}"   # or pictures in folders, or in an archive
inputs = ["text"]               # fields that a model may see; or { text = "Its Column" } to rename
labels = ["topic"]
meta = ["year"]                 # what rules may read, and models never see
classes = ["topic"]             # labels whose texts are classes: whole numbers, in the texts' order
                                # (found without being asked where each text is that of several rows)
categories = ["colour"]         # inputs whose whole numbers are codes: other numbers have an order and distances
types = { year = "string" }     # where a type is not to be what the data look like
options = { missing = ["?"] }   # of the reader, `table` or `image_folder`
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic import Field as Item

from ...core.errors import BadDefinition
from ...splits.measures.times import NAIVE, ZONED, in_utc
from ...splits.schema import Field, Schema
from ..readers import image_folder, table
from ..readers._tensors import Ragged, item_of, tensors
from ..readers._typed import plain
from .members import Members

if TYPE_CHECKING:
    import pyarrow as pa

Columns = list[str] | dict[str, str | list[str]]
_MOST_CLASSES = 20_000
_MOST_FOUND = 1_000
_ROWS_A_CLASS = 5
"""A label whose texts are at most that many, each that of so many rows on average, has classes."""
_NUMBER = r"^[+-]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|inf(inity)?))$"
_LIST = r"^\[[\s\d.,eE+\-\[\]]*\]$"
_NOT_ASKED = ("missing", "if_missing", "is_missing", "maps", "above", "at_least", "sample")
"""Options of the reader `table` that change cells: cells are looked at as they are."""
_MADE = ("constants", "texts", "ranges", "is_missing")
"""Options of the reader `table` that make fields without a column."""


class Data(BaseModel):
    """The `[data]` table of a draft."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hub: str = ""
    revision: str = "main"
    files: list[str] = []
    images: str = ""
    inputs: Columns = Item(min_length=1)
    labels: Columns = Item(min_length=1)
    meta: Columns = []
    classes: list[str] = []
    categories: list[str] = []
    types: dict[str, str] = {}
    options: dict[str, Any] = {}
    title: str = ""
    licence: str = "unknown"
    citation: str = "none"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.files) == bool(self.images):
            raise ValueError("name either `files` or `images`")
        if self.hub and self.images:
            raise ValueError("`images` are those of this machine: a data set of the Hub has `files`")
        return self

    def columns(self) -> dict[str, tuple[str | list[str], str]]:
        """Each field's column (several, for a tensor) and role; `BadDefinition` where a field is named twice."""
        found: dict[str, tuple[str | list[str], str]] = {}
        for role, columns in (("input", self.inputs), ("label", self.labels), ("meta", self.meta)):
            for field, column in (columns if isinstance(columns, dict) else {name: name for name in columns}).items():
                if field in found:
                    raise BadDefinition(f"[data] names the field {field!r} twice")
                found[field] = (column, role)
        if unknown := sorted({*self.classes, *self.categories, *self.types} - found.keys()):
            raise BadDefinition(f"[data] has no field {unknown[0]!r} (it has {', '.join(found)})")
        return found


@dataclass(frozen=True)
class Plan:
    """How rows are made of the data: the reader, its options, and the fields that it gives."""

    reader: str
    options: dict[str, Any]
    schema: Schema


def plan_table(data: Data, files: Mapping[str, Path]) -> Plan:
    """How tables are read, with the types that all their rows have."""
    columns = data.columns()
    made = {field for name in _MADE for field in data.options.get(name, {})} | {data.options.get("row_number", "")}
    wanted = {field: column for field, (column, _) in columns.items() if field not in made}
    options = {**data.options, "columns": wanted}
    kinds = {field: f"float32[{len(column)}]" for field, column in wanted.items() if isinstance(column, list)}
    kinds |= dict.fromkeys(data.options.get("is_missing", {}), "bool")
    kinds |= dict.fromkeys([*data.options.get("above", {}), *data.options.get("at_least", {})], "int64")
    kinds |= {field: _kind_of(values) for field, values in data.options.get("maps", {}).items()}
    # Every row is looked at once: a type that the first rows have is not always that of the last.
    asked = {key: value for key, value in options.items() if key not in _NOT_ASKED}
    asked |= {"columns": {field: column for field, column in wanted.items() if field not in kinds}}
    ignored = {"", *data.options.get("missing", [])}
    guesses: dict[str, Guess] = {}
    for piece in table.pieces(files, **asked, if_missing="drop"):
        for field in columns:
            if field in piece.column_names:
                guesses.setdefault(field, Guess(ignored)).look(piece[field])
    for field, guess in guesses.items():
        is_time = guess.looks_like_times and columns[field][1] == "meta" and field in wanted
        kinds[field] = "timestamp" if is_time else guess.type
        if data.types.get(field) == "timestamp" and guess.zones == {True, False}:
            raise BadDefinition(f"[data] {field!r}: times have a zone in some rows and none in others: write all alike")
    kinds |= data.types
    given = data.options.get("maps", {})
    if maps := class_maps(data, {field: guess for field, guess in guesses.items() if field not in given}):
        options["maps"] = {**given, **maps}
        kinds |= dict.fromkeys(maps, "int64")
    return Plan("table", options, _schema(columns, kinds))


def class_maps(data: Data, guesses: Mapping[str, Guess]) -> dict[str, list[str]]:
    """The classes of each label that has some, in their order: of labels that are said to, and of labels whose texts
    are few and each that of several rows."""
    maps = {}
    for field, (_, role) in data.columns().items():
        if field not in guesses or field in data.types:
            continue
        guess = guesses[field]
        if field in data.classes or (role == "label" and guess.looks_like_classes):
            maps[field] = _classes(field, guess.texts)
    return maps


def _kind_of(values: Mapping[str, Any] | list[Any]) -> str:
    """The type of what a map's texts stand for."""
    kinds = {int: "int64", float: "float64", bool: "bool"}
    found = (
        {kinds.get(type(value), "string") for value in values.values()} if isinstance(values, Mapping) else {"int64"}
    )
    return found.pop() if len(found) == 1 else "string"


def plan_images(data: Data, files: Mapping[str, Path | Members], pattern: str) -> Plan:
    """How pictures are read: which field is the picture, and what the parts of its path are. Labels that are text are
    classes."""
    columns = data.columns()
    fields = {field: str(column) for field, (column, _) in columns.items() if column not in ("image", "path")}
    options: dict[str, Any] = {**data.options, "pattern": pattern, "fields": fields}
    named = {str(column): field for field, (column, _) in columns.items()}
    if "image" not in named:
        raise BadDefinition('[data] names no field for the picture itself: inputs = ["image"]')
    options |= {"image": named["image"]} if named["image"] != "image" else {}
    options |= {"path": named["path"]} if "path" in named else {}
    found = image_folder.parts(files, **{key: value for key, value in options.items() if key != "image"})
    guesses = {field: Guess.of(parts[part] for parts in found) for field, part in fields.items()}
    kinds = {field: guess.type for field, guess in guesses.items()} | {named["image"]: "image"} | data.types
    kinds |= {named["path"]: "string"} if "path" in named else {}
    given = data.options.get("maps", {})
    texts = [field for field, (_, role) in columns.items() if role == "label" and kinds.get(field) == "string"]
    maps = {field: _classes(field, guesses[field].texts) for field in {*texts, *data.classes} if field not in given}
    kinds |= dict.fromkeys([*maps, *given], "int64")
    if maps or given:
        options["maps"] = {**given, **dict(sorted(maps.items()))}
    return Plan("image_folder", options, _schema(columns, kinds))


def _classes(field: str, texts: set[str]) -> list[str]:
    if len(texts) > _MOST_CLASSES:
        raise BadDefinition(f"[data] {field!r} has over {_MOST_CLASSES:,} different texts: they are no classes")
    return sorted(texts)


def _schema(columns: Mapping[str, tuple[Any, str]], kinds: Mapping[str, str]) -> Schema:
    if absent := [field for field in columns if field not in kinds]:
        raise BadDefinition(f"[data] no rows to tell from what {', '.join(absent)} is")
    return Schema(tuple(Field(field, kinds[field], role) for field, (_, role) in columns.items()))  # type: ignore[arg-type]


class Guess:
    """What the values of a column are, as far as they have been looked at. A number that begins with a zero ("007") is
    text, and so is a column without any value."""

    def __init__(self, ignored: Iterable[str] = ("",)) -> None:
        self.texts: set[str] = set()
        self._ignored = sorted(ignored)
        self._fits = {"bool": True, "int64": True, "float64": True}
        self._own, self._seen = "", 0
        self.zones: set[bool] = set()
        """Whether times have a zone: of texts that are times, as far as all have been."""
        self._times = True
        self._shapes: set[tuple[int, ...]] = set()
        self._item = ""
        self._all_lists = True

    @classmethod
    def of(cls, texts: Iterable[str]) -> Guess:
        import pyarrow as pa

        guess = cls()
        guess.look(pa.chunked_array([pa.array(list(texts), pa.string())]))
        return guess

    def look(self, column: pa.ChunkedArray) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = plain(column)
        if item_of(column.type):
            self._own = self._lists(column, item_of(column.type))
            return
        if not pa.types.is_string(column.type):
            tests = ((pa.types.is_boolean, "bool"), (pa.types.is_integer, "int64"), (pa.types.is_floating, "float64"))
            times = ((pa.types.is_timestamp, "timestamp"), (pa.types.is_date, "timestamp"))
            self._own = next((kind for test, kind in (*tests, *times) if test(column.type)), "string")
            return
        values = column.drop_null()
        values = values.filter(pc.invert(pc.is_in(values, pa.array(self._ignored, pa.string()))))
        if len(self.texts) <= _MOST_CLASSES:
            self.texts.update(pc.unique(values).to_pylist())
        self._seen += len(values)
        self._look_for_times(values)
        self._look_for_lists(values)
        for kind, pattern in (
            ("bool", r"^(?i:true|false)$"),
            ("int64", r"^[+-]?(0|[1-9][0-9]{0,17})(\.0+)?$"),
            ("float64", _NUMBER),
        ):
            if self._fits[kind]:
                fits = pc.all(pc.match_substring_regex(values, pattern)).as_py()
                self._fits[kind] = fits is not False

    def _lists(self, column: pa.ChunkedArray, item: str) -> str:
        """The type of a column of lists of numbers: a tensor, or text where they are not all of one shape."""
        if self._own == "string":
            return "string"
        try:
            self._shapes.add(tensors(column)[1])
        except Ragged:
            return "string"
        (shape, *others) = self._shapes
        return "string" if others or 0 in shape else f"{item}[{','.join(map(str, shape))}]"

    def _look_for_lists(self, values: pa.ChunkedArray) -> None:
        """Whether texts are lists of numbers, as JSON writes them, all of one shape."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._all_lists and pc.all(pc.match_substring_regex(values, _LIST)).as_py() is not False and len(values):
            try:
                column = pa.chunked_array([pa.array([json.loads(text) for text in values.to_pylist()])])
                item = item_of(column.type)
                self._item = "float32" if "float32" in (item, self._item) else item
                self._shapes.add(tensors(column)[1])
                return
            except ValueError:  # no JSON, or not even (pa.ArrowInvalid and Ragged are of its kind)
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
                    in_utc(its)
                except pa.ArrowInvalid:  # such as the 31st of June
                    break
                return
        self._times = False

    @property
    def looks_like_times(self) -> bool:
        """Whether all values are times in ISO 8601, with a zone each or none."""
        return self._own == "timestamp" or (self._times and self._seen > 0 and len(self.zones) == 1)

    @property
    def looks_like_classes(self) -> bool:
        """Whether the values are texts, few, and each that of several rows. A number among them is a slip of the pen in
        a column of texts, or a text is one in a column of numbers: nobody knows, so that it does not."""
        count = len(self.texts)
        few = self.type == "string" and 0 < count <= min(_MOST_FOUND, self._seen // _ROWS_A_CLASS)
        return few and not any(re.match(_NUMBER, text) for text in self.texts)

    @property
    def type(self) -> str:
        if (
            self._all_lists
            and len(self._shapes) == 1
            and 0 not in min(self._shapes)
            and self._item in ("int64", "float32")
        ):
            return self._own or f"{self._item}[{','.join(map(str, min(self._shapes)))}]"
        return self._own or next((kind for kind, fits in self._fits.items() if fits and self._seen), "string")
