"""The fields of a source: their names, types and roles."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..core.errors import BadDefinition, get_first_line

if TYPE_CHECKING:
    import pyarrow as pa

Role = Literal["input", "label", "meta"]

RESERVED = ("row_id", "check", "part", "weight", "group", "severity", "corrupted")
"""Column names that a `Part` adds itself."""

_ENCODED = ("image", "audio")
"""Encoded files as published (JPEG, PNG .., WAV ..): bytes that are decoded on use."""

_TIME, _MESSAGES = "timestamp", "messages"
_SCALARS = ("int64", "uint64", "float64", "bool", "string", "bytes", _TIME, _MESSAGES, *_ENCODED)
_TENSOR = re.compile(r"^(uint8|int64|float32)\[(\d+(?:,\d+)*)\]$")


def is_field_name(name: str) -> bool:
    """Return whether this is a valid field name: lower-case letters, digits and _, and none of the `RESERVED` names."""
    return bool(re.fullmatch(r"[a-z][a-z0-9_]*", name)) and name not in RESERVED


@dataclass(frozen=True)
class Field:
    """One field. `type` is a scalar type, a tensor of fixed shape such as `uint8[8,8]`, or `image` or `audio`: the
    bytes of a published file. Row ids cover those bytes, so decoders may differ. A `timestamp` is an integer number of
    microseconds since 1970-01-01T00:00 UTC; a time without a zone is read as UTC. `messages` are a chat as JSON text, a
    list of { role, content }, which a chat endpoint gets as its messages.

    Roles: an `input` may be shown to a model and determines the row id; a `label` is predicted; `meta` (a domain, a
    length) serves rules and reports, and is never shown to a model.
    """

    name: str
    type: str
    role: Role

    def __post_init__(self) -> None:
        if not is_field_name(self.name):
            raise BadDefinition(
                f"field name {self.name!r}: use lower-case letters, digits and _, and none of {', '.join(RESERVED)}"
            )
        if self.type not in _SCALARS and not _TENSOR.match(self.type):
            raise BadDefinition(
                f"field {self.name!r} has unknown type {self.type!r}: use one of {', '.join(_SCALARS)} "
                "or a tensor such as uint8[8,8]"
            )
        if self.type == _TIME and self.role in get_args(Role)[:2]:
            raise BadDefinition(
                f"field {self.name!r} is a timestamp, which cannot be of role {self.role}: make it meta (for rules), "
                f'text (types = {{ {self.name} = "string" }}), or a numeric column, such as the hour'
            )
        if self.role not in get_args(Role):
            raise BadDefinition(f"field {self.name!r} has role {self.role!r}: use input, label or meta")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value: `()` for a scalar."""
        tensor = _TENSOR.match(self.type)
        return tuple(int(side) for side in tensor[2].split(",")) if tensor else ()

    @property
    def item(self) -> str:
        """The type of one stored element: the scalar type itself, a tensor's, bytes for an encoded image or audio file,
        or string for messages."""
        tensor = _TENSOR.match(self.type)
        return tensor[1] if tensor else "bytes" if self.encoded else "string" if self.type == _MESSAGES else self.type

    @property
    def encoded(self) -> bool:
        """Whether a value is an encoded image or audio file."""
        return self.type in _ENCODED

    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        item = {"bytes": pa.binary(), "string": pa.string(), "bool": pa.bool_(), _TIME: pa.timestamp("us")}.get(
            self.item
        )
        item = item or getattr(pa, self.item)()
        return pa.list_(item, math.prod(self.shape)) if self.shape else item


@dataclass(frozen=True)
class Schema:
    """The fields of a source, in display order."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if len(set(names)) != len(names):
            raise BadDefinition(f"a field is named twice: {', '.join(names)}")
        if not any(field.role == "input" for field in self.fields):
            raise BadDefinition("a source needs at least one field of role 'input'")

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        from ..core.errors import UnknownName

        raise UnknownName("field", name, (field.name for field in self.fields))

    def of_role(self, role: Role) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.role == role)

    def arrow(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([pa.field(field.name, field.arrow(), nullable=False) for field in self.fields])

    def conform(self, table: pa.Table, where: str) -> pa.Table:
        """Return `table` with exactly these columns, types and order; `BadDefinition` if a column is missing or of
        another type, or has a null or text that is not UTF-8."""
        import pyarrow as pa

        missing = [field.name for field in self.fields if field.name not in table.column_names]
        if missing:
            raise BadDefinition(f"{where} gives no column {', '.join(missing)} (it gives {table.column_names})")
        table = table.select([field.name for field in self.fields])
        holes = [name for name in table.column_names if table[name].null_count]
        if holes:
            raise BadDefinition(f"{where} has missing values in {', '.join(holes)}: fill them, or leave those rows out")
        try:
            table = table.cast(self.arrow())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise BadDefinition(f"{where} does not fit its schema: {get_first_line(error)}") from error
        for field in self.fields:
            if field.item == "string":
                _require_utf8(table[field.name], f"{where}, field {field.name!r}")
        return table

    def records(self) -> list[dict[str, Any]]:
        return [{"name": field.name, "type": field.type, "role": field.role} for field in self.fields]


def _require_utf8(column: pa.ChunkedArray, where: str) -> None:
    import pyarrow as pa

    try:
        column.validate(full=True)  # a file may declare bytes as text without checking them
    except pa.ArrowInvalid as error:
        message = get_first_line(error)
        raise BadDefinition(f"{where} is not UTF-8: re-encode it, or store it as binary ({message})") from error
