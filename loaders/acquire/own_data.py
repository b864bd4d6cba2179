"""The `[data]` table of a draft, which describes the user's own data, and what is inferred from the data.

[data]
hub = "owner/name"              # a data set of the Hub (with `revision`, a branch or commit); or leave it out
files = ["data/*.csv"]          # CSV, TSV, JSON, JSON lines or Parquet, compressed or not: of that data set, or local
                                # files, relative to the draft
images = "photos/{domain}/{category}/{file}"   # or images in folders, or in an archive
audio = "clips/{speaker}/{word}/{file}"        # or audio files (wav)
texts = "mails/{year}/{topic}/{file}"          # or texts, a file each
                                # with `files`: the images, audio files or texts that these tables name, such as
                                # images = "photos/{file}" for the names in the column `file`
inputs = ["text"]               # fields that a model may see; or { text = "Its Column" } to rename
labels = ["topic"]
meta = ["year"]                 # fields for rules, never visible to models
classes = ["topic"]             # labels whose texts (or numbers) are classes, numbered in the order of the texts
                                # (detected by default if each text is that of several rows)
categories = ["colour"]         # inputs whose integers are codes without an order
types = { year = "string" }     # types to use instead of the inferred ones
options = { missing = ["?"] }   # options of the reader: `table`, or those of `image_folder.py`
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic import Field as Item

from ...core.errors import BadDefinition, shorten_list
from ...core.progress import log_message, mute_messages
from ...core.text import write_inline
from ...splits.schema import RESERVED, Field, Schema, is_field_name
from ..readers import image_folder, table
from ..readers._cells import to_text
from .archive_files import ArchiveFiles
from .labels import number_classes
from .type_inference import TypedColumn, TypeInference

_SHOWN = 12
"""The number of columns that an error message lists in full."""
Columns = list[str] | dict[str, str | list[str]]
_CELL_OPTIONS = ("missing", "if_missing", "is_missing", "maps", "above", "at_least", "sample")
"""Options of the reader `table` that change cells: types are inferred from the unchanged cells."""
_FIELD_OPTIONS = ("constants", "texts", "ranges", "is_missing")
"""Options of the reader `table` that add fields without a column."""


@dataclass(frozen=True)
class Content:
    """A kind of files in folders: their reader, the name of their column, the type of its field, and what a message
    calls a file."""

    reader: str
    column: str
    type: str
    title: str


_FOLDERS = {
    "images": Content("image_folder", "image", "image", "image"),
    "audio": Content("image_folder/wav", "audio", "audio", "audio clip"),
    "texts": Content("image_folder/texts", "text", "string", "text"),
}


class Data(BaseModel):
    """The `[data]` table of a draft."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hub: str = ""
    revision: str = "main"
    files: list[str] = []
    images: str = ""
    audio: str = ""
    texts: str = ""
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
        folders = [key for key in _FOLDERS if getattr(self, key)]
        if len(folders) > 1 or not (folders or self.files):
            raise ValueError(
                "give `files`, or one of `images`, `audio` and `texts`, or one of these and tables (`files`)"
            )
        if self.hub and folders:
            raise ValueError(f"`{folders[0]}` is for local files: for a Hub data set give `files`")
        return self

    @property
    def folder(self) -> str:
        """The pattern of the paths of images, audio files or texts; empty for tables."""
        return self.images or self.audio or self.texts

    @property
    def content(self) -> Content:
        """What the files of `folder` are."""
        return _FOLDERS["audio" if self.audio else "texts" if self.texts else "images"]

    def content_field(self) -> str:
        """Return the field of the files of `folder`. Raises `BadDefinition` if there is none."""
        for field, (column, _) in self.columns().items():
            if column == self.content.column:
                return field
        column, what = self.content.column, self.content.title
        raise BadDefinition(f'[data] has no field for the {what} itself: add it by inputs = ["{column}"]')

    def columns(self) -> dict[str, tuple[str | list[str], str]]:
        """Return each field's column (several, for a tensor) and role. Raises `BadDefinition` if a field occurs
        twice."""
        fields: dict[str, tuple[str | list[str], str]] = {}
        for role, columns in (("input", self.inputs), ("label", self.labels), ("meta", self.meta)):
            _check_names(f"{role}s" if role != "meta" else role, columns)
            for field, column in (columns if isinstance(columns, dict) else {name: name for name in columns}).items():
                if field in fields:
                    raise BadDefinition(
                        f"[data] names the field {field!r} twice: remove one from inputs, labels or meta, or rename "
                        f"one by {{ other = {json.dumps(column)} }}"
                    )
                fields[field] = (column, role)
        for option in ("classes", "categories", "types"):
            if unknown := sorted({*getattr(self, option)} - fields.keys()):
                raise BadDefinition(f"[data] {option}: there is no field {unknown[0]!r} (fields: {', '.join(fields)})")
        if both := sorted({*self.classes} & self.types.keys()):
            raise BadDefinition(f"[data] {both[0]!r} is in both `classes` and `types`: remove it from one")
        return fields


def _check_names(key: str, columns: Columns) -> None:
    """Raise `BadDefinition` if a column's name is not valid for a field, with the line that renames it."""
    if not (wrong := [name for name in columns if not is_field_name(name)]):
        return
    renamed = {}
    for name, column in (columns if isinstance(columns, dict) else {name: name for name in columns}).items():
        if name in wrong or len(columns) <= _SHOWN:
            plain = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
            renamed[plain if is_field_name(plain) else f"x_{plain}".rstrip("_")] = column
    more = "" if len(columns) <= _SHOWN else ", and the other columns by their own names"
    raise BadDefinition(
        f"[data] {wrong[0]!r} is not a valid field name (lower-case letters, digits and _, except "
        f"{', '.join(RESERVED)}): write {key} = {write_inline(renamed)}{more}"
    )


@dataclass(frozen=True)
class Plan:
    """How rows are read from the data: the reader, its options, and the fields that it returns."""

    reader: str
    options: dict[str, Any]
    schema: Schema
    no_classes: tuple[tuple[str, str], ...] = ()
    """Labels that are kept as text by default, each with the reason why its texts are not classes."""


def plan_listed(data: Data, files: Mapping[str, Path], folder: str) -> Plan:
    """Plan how tables are read with the images, audio files or texts that they name. folder: where these are."""
    field = data.content_field()
    plan = plan_table(data, files, {field: data.content.type})
    own = {"tables": sorted(files), "path": data.folder, "folder": folder, "field": field}
    return replace(plan, reader="listed_files", options={**plan.options, **own})


def plan_table(data: Data, files: Mapping[str, Path], added: Mapping[str, str] | None = None) -> Plan:
    """Plan how tables are read, with types that fit all rows. added: the type of a field that is no column."""
    columns = data.columns()
    derived_fields = {field for name in _FIELD_OPTIONS for field in data.options.get(name, {})}
    derived_fields |= {data.options.get("row_number", ""), *(added or {})}
    source_columns = {field: column for field, (column, _) in columns.items() if field not in derived_fields}
    options = {**data.options, "columns": source_columns}
    kinds = {field: f"float32[{len(column)}]" for field, column in source_columns.items() if isinstance(column, list)}
    kinds |= dict.fromkeys(data.options.get("is_missing", {}), "bool") | dict(added or {})
    kinds |= dict.fromkeys([*data.options.get("above", {}), *data.options.get("at_least", {})], "int64")
    kinds |= {field: _infer_map_type(values) for field, values in data.options.get("maps", {}).items()}
    # All rows are read once: the type of the first rows may not fit the last.
    reader_options = {key: value for key, value in options.items() if key not in _CELL_OPTIONS}
    reader_options |= {"columns": {field: column for field, column in source_columns.items() if field not in kinds}}
    only_typed = all(name.endswith((".parquet", ".npz")) for name in files) and not data.types
    ignored = {"", *data.options.get("missing", [])}
    decimal = str(data.options.get("decimal", "."))
    guesses: dict[str, TypeInference] = {}
    typed: dict[str, TypedColumn] = {}
    untyped: dict[str, str] = {}  # by field, the first file without types that has it
    unfilled = _find_filled_fields(data.options)
    if only_typed:  # labels that are lists may have unknown items
        unfilled |= {field for field, (_, role) in columns.items() if role == "label"}
    with mute_messages():
        for file, has_types, piece in table.iterate_stored_pieces(files, unfilled, **reader_options):
            for field in columns:
                if field in piece.column_names:
                    guess = guesses.setdefault(field, TypeInference(ignored, decimal))
                    if has_types and field in source_columns:
                        typed.setdefault(field, TypedColumn(field, source_columns[field])).look(file, piece[field])
                    else:
                        untyped.setdefault(field, file)
                    column = to_text(piece[field]) if field in data.classes else piece[field]
                    try:
                        guess.look(column, not only_typed or columns[field][1] == "label" or field in data.classes)
                    except UnicodeDecodeError as error:  # a Parquet file may declare bytes as text
                        raise BadDefinition(
                            f"[data] {file}, field {field!r} is not UTF-8: re-encode it, or store it as binary"
                        ) from error
    if reader_options["columns"] and not guesses:
        if not count_rows(files, data.options, source_columns):
            raise BadDefinition(f"[data] {_describe_no_rows(sorted(files))}")
        raise BadDefinition(
            f"[data] the type of {', '.join(reader_options['columns'])} cannot be inferred: {', '.join(sorted(files))} "
            "has no row with a value in each: remove a field that has no values"
        )
    for field, guess in guesses.items():
        is_time = guess.looks_like_times and columns[field][1] == "meta" and field in source_columns
        kinds[field] = "timestamp" if is_time else guess.type
        if field in typed:
            kinds[field] = data.types.get(field) or typed[field].settle(guess, untyped.get(field, ""))
            source_columns[field] = typed[field].column_for(kinds[field])
        chosen = field in data.types or columns[field][1] == "label" or field in data.classes
        if hint := "" if chosen else guess.explain_text(field, columns[field][1]):
            log_message(f"[data] {field} is text: {hint}")
        if data.types.get(field) == "timestamp" and guess.zones == {True, False}:
            raise BadDefinition(
                f"[data] {field!r}: times have a zone in some rows and none in others: use one form for all, or read "
                f'them as text with types = {{ {field} = "string" }}'
            )
    kinds |= data.types
    given = data.options.get("maps", {})
    unmapped = {field: guess for field, guess in guesses.items() if field not in given}
    maps, no_classes = _find_classes(data, unmapped, kinds)
    if maps:
        options["maps"] = {**given, **maps}
    return Plan("table", options, _make_schema(columns, kinds | dict.fromkeys(maps, "int64")), no_classes)


def _find_classes(
    data: Data, guesses: Mapping[str, TypeInference], kinds: Mapping[str, str]
) -> tuple[dict[str, list[str]], tuple[tuple[str, str], ...]]:
    """The classes of each field that has classes, in order: fields named in `classes`, and text labels with few
    distinct texts, each in several rows; and `Plan.no_classes`. Labels, and other fields of `classes` that are no
    inputs, share one numbering if they share a text, so that a rule can compare them. kinds: the type of each field
    without classes."""
    texts: dict[str, Collection[str]] = {}
    no_classes = []
    labels = [field for field, (_, role) in data.columns().items() if role == "label"]
    for field in data.columns():
        if field not in guesses or field in data.types:
            continue
        if field in data.classes:
            texts[field] = guesses[field].texts
        elif field in labels and kinds[field] == "string":
            if why := guesses[field].why_no_classes:
                no_classes.append((field, f'{why}: classes = ["{field}"] turns them into classes'))
            else:
                texts[field] = guesses[field].texts
    inputs = {field for field, (_, role) in data.columns().items() if role == "input"}
    return number_classes(texts, {*labels, *data.classes} - inputs), tuple(no_classes)


def count_rows(files: Mapping[str, Path], options: Mapping[str, Any], columns: Mapping[str, Any]) -> int:
    """The rows of tables that `where`, `without` and `between` keep, also those with missing values."""
    chosen = {key: value for key, value in options.items() if key not in _CELL_OPTIONS} | {"columns": dict(columns)}
    with mute_messages():
        return sum(piece.num_rows for _, _, piece in table.iterate_stored_pieces(files, set(columns), **chosen))


def _describe_no_rows(files: Sequence[str] = ()) -> str:
    which = f"{shorten_list(files)} {'has' if len(files) == 1 else 'have'}" if files else "the files have"
    return f"{which} no rows, or `where`, `without` and `between` of `options` exclude all"


def _find_filled_fields(options: Mapping[str, Any]) -> set[str]:
    """The fields whose missing values are replaced by a value."""
    rule, flagged = options.get("if_missing", "error"), set(options.get("is_missing", {}).values())
    if not isinstance(rule, dict):
        return flagged if rule == "error" else set()
    return {field for field, then in rule.items() if then not in ("drop", "error")} | (flagged - set(rule))


def _infer_map_type(values: Mapping[str, Any] | list[Any]) -> str:
    """The type of the values of a map."""
    if not isinstance(values, Mapping):
        return "int64"
    kinds = {int: "int64", float: "float64", bool: "bool"}
    types = {kinds.get(type(value), "string") for value in values.values()}
    return types.pop() if len(types) == 1 else "string"


def plan_folder(data: Data, files: Mapping[str, Path | ArchiveFiles], pattern: str) -> Plan:
    """Plan how images, audio files or texts are read: which field is the file, and which are parts of its path. Text
    labels are classes."""
    columns = data.columns()
    content, own_field = data.content.column, data.content_field()
    fields = {field: str(column) for field, (column, _) in columns.items() if column not in (content, "path")}
    options: dict[str, Any] = {**data.options, "pattern": pattern, "fields": fields}
    named = {str(column): field for field, (column, _) in columns.items()}
    options |= {content: own_field} if own_field != content else {}
    options |= {"path": named["path"]} if "path" in named else {}
    with mute_messages():
        path_options = {key: value for key, value in options.items() if key not in (content, "encoding")}
        path_parts = image_folder.list_parts(files, content, **path_options)
    guesses = {field: TypeInference.of(parts[part] for parts in path_parts) for field, part in fields.items()}
    kinds = {field: guess.type for field, guess in guesses.items()} | {own_field: data.content.type} | data.types
    kinds |= {named["path"]: "string"} if "path" in named else {}
    given = data.options.get("maps", {})
    if unnamed := sorted({*data.classes} - fields.keys()):
        raise BadDefinition(f"[data] classes: {unnamed[0]!r} is not a field of a part of the path")
    labels = [name for name, (_, role) in columns.items() if role == "label"]
    texts = {name for name in labels if kinds.get(name) == "string" and name not in data.types} | {*data.classes}
    maps = number_classes({name: guesses[name].texts for name in sorted(texts) if name not in given}, labels)
    kinds |= dict.fromkeys([*maps, *given], "int64")
    if maps or given:
        options["maps"] = {**given, **maps}
    return Plan(data.content.reader, options, _make_schema(columns, kinds))


def _make_schema(columns: Mapping[str, tuple[Any, str]], kinds: Mapping[str, str]) -> Schema:
    if absent := [field for field in columns if field not in kinds]:
        raise BadDefinition(f"[data] the type of {', '.join(absent)} cannot be inferred: {_describe_no_rows()}")
    return Schema(tuple(Field(field, kinds[field], role) for field, (_, role) in columns.items()))  # type: ignore[arg-type]
