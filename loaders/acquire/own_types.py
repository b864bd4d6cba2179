"""The type of a field whose column has a type of its own in one file or several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...core.errors import BadDefinition
from ...core.progress import log_message
from ..batching.encoded import find_media_type
from ..readers._arrow_types import (
    NO_VALUES,
    NotExact,
    describe_remedy,
    describe_type,
    find_common_type,
    has_encoded_files,
    infer_field_type,
    loses_precision,
    to_item,
    to_stored_type,
)
from ..readers._tensors import find_item_type
from .type_inference import TypeInference

if TYPE_CHECKING:
    import pyarrow as pa

LISTS = "[]"
"""The suffix of the type of a column of lists before their shape is known."""
ENCODED = "encoded"
"""The type of a column of encoded files before their kind is known."""


def infer_column_type(kind: pa.DataType) -> str:
    """Return a field's type for a column type: a scalar type, an item type and `LISTS`, `ENCODED`, `NO_VALUES`, or
    ""."""
    if has_encoded_files(kind):
        return ENCODED
    item = find_item_type(to_stored_type(kind))
    return f"{item}{LISTS}" if item else infer_field_type(kind)


def settle_type(
    field: str, column: object, kinds: Mapping[str, pa.DataType], texts: Mapping[str, str] | None = None
) -> str:
    """Return the type that holds a column of these types (one for each file). `texts`: the inferred type for a file
    without types. Raises `BadDefinition`, which names file, column and remedy, if there is none."""
    import pyarrow as pa

    known: dict[str, str] = {}  # by type, the first file that has it
    for file, kind in kinds.items():
        type_name = (texts or {}).get(file) or infer_column_type(kind)
        if not type_name:
            parts = (
                f', or a part of it by its name ("{column}.{kind.field(0).name}")' if pa.types.is_struct(kind) else ""
            )
            raise BadDefinition(
                f"[data] {file}: column {column!r} is {describe_type(kind)}, which no field type supports: "
                f"{describe_remedy(field, kind)}{parts}"
            )
        known.setdefault(type_name, file)
    common = find_common_type(known)
    if not common:
        file, other = list(known.values())[:2]
        raise BadDefinition(
            f"[data] {other}: column {column!r} is {describe_type(kinds[other])}, but {describe_type(kinds[file])} in "
            f"{file}: {describe_remedy(field)}, or use one type in all files"
        )
    if common == NO_VALUES:
        raise BadDefinition(f"[data] {next(iter(kinds))}: column {column!r} has no values: remove {field!r}")
    if common == "timestamp":
        _refuse_zones(field, column, kinds)
    return common


def _refuse_zones(field: str, column: object, kinds: Mapping[str, pa.DataType]) -> None:
    files = {bool(getattr(to_stored_type(kind), "tz", None)): file for file, kind in reversed(list(kinds.items()))}
    if len(files) > 1:
        raise BadDefinition(
            f"[data] {files[False]}: column {column!r} has times without a zone, but {files[True]} with one: use one "
            f"form, or {describe_remedy(field)}"
        )


def detect_media(column: pa.ChunkedArray) -> str:
    """Whether encoded files are images or audio, by the first bytes of the first one."""
    first = next((value.as_py() for value in column if value.is_valid), b"")
    return "audio" if find_media_type(first).startswith("audio/") else "image"


class TypedColumn:
    """A field's column in files that have types, as far as it has been read."""

    def __init__(self, field: str, column: str | list[str]) -> None:
        self._field, self._column = field, column
        self._kinds: dict[str, pa.DataType] = {}
        self._media = ""
        self._inexact: tuple[str, pa.DataType] | None = None
        """A value that float64 does not represent exactly, and its type."""
        self._narrows = False

    def look(self, file: str, column: pa.ChunkedArray) -> None:
        import pyarrow.compute as pc

        self._kinds.setdefault(file, column.type)
        kind = infer_column_type(column.type)
        if kind == ENCODED and not self._media:
            self._media = detect_media(pc.struct_field(column, "bytes"))
        elif kind.endswith(LISTS):
            self._narrows = self._narrows or loses_precision(column)
        elif kind in ("int64", "float64") and self._inexact is None:
            try:
                to_item(column, "float64")
            except NotExact as error:
                self._inexact = f"{file}: {self._field} is {error}", column.type

    def settle(self, guess: TypeInference, untyped: str, given: str) -> str:
        """Return the field's type: the one in the draft, or one that holds the values of all files. Raises
        `BadDefinition` if there is none. `untyped`: the name of a file without types, if there is one."""
        import pyarrow as pa

        if given:
            if given == "float64" and self._inexact:
                log_message(f"[data] {self._inexact[0]}: rounded, as set by `types`")
            return given
        texts = {untyped: guess.text_type} if untyped else {}
        kind = settle_type(self._field, self._column, self._kinds | dict.fromkeys(texts, pa.string()), texts)
        if kind == "float64" and self._inexact:
            raise BadDefinition(f"[data] {self._inexact[0]}: {describe_remedy(self._field, self._inexact[1])}")
        if not kind.endswith(LISTS):
            return self._media if kind == ENCODED else kind
        _, _, shape = guess.type.partition("[")
        if not shape:
            raise BadDefinition(
                f"[data] {next(iter(self._kinds))}: column {self._column!r} has lists of several lengths, or with "
                f"missing values: pad them to one length, or {describe_remedy(self._field)}"
            )
        if self._narrows:
            report_precision_loss(self._field)
        return f"{kind.removesuffix(LISTS)}[{shape}"

    def column_for(self, kind: str) -> str | list[str]:
        """Return the column from which a field of a type is read."""
        encoded = any(infer_column_type(stored_kind) == ENCODED for stored_kind in self._kinds.values())
        return f"{self._column}.bytes" if encoded and kind in ("image", "audio", "bytes") else self._column


def report_precision_loss(field: str) -> None:
    log_message(f"[data] {field}: the numbers of its lists are rounded to float32")
