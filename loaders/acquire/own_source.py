"""A source of the user's own: what a draft's `[data]` table says, pinned into `loaders/sources/<name>.toml`.

[data]
hub = "owner/name"              # a data set of the Hub (with `revision`, a branch or commit); or leave it out
files = ["data/*.parquet"]      # Parquet files: of that data set, or of this machine, beside the draft
inputs = ["text"]               # fields that a model may see; or { text = "Its Column" } to rename
labels = ["topic"]
meta = ["year"]                 # what rules may read, and models never see
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Item

from ...core.errors import BadData, BadDefinition, Unavailable
from ...core.files import cache_root, file_sha256, lock_elsewhere, locked, plain_disk_errors, write_atomically
from ...splits.pins import FilePin
from ...splits.schema import Field, Schema
from ..cache.store import keep
from ..readers.parquet import opened
from .fetch import fetch_file
from .hub_files import hub_pins
from .source import Distribution, FieldPin, Source, SourceDefinition, read_source, sources

if TYPE_CHECKING:
    import pyarrow as pa

Columns = list[str] | dict[str, str]


class Data(BaseModel):
    """The `[data]` table of a draft."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hub: str = ""
    revision: str = "main"
    files: list[str] = Item(min_length=1)
    inputs: Columns = Item(min_length=1)
    labels: Columns = Item(min_length=1)
    meta: Columns = []
    title: str = ""
    licence: str = "unknown"
    citation: str = "none"

    def columns(self) -> dict[str, tuple[str, str]]:
        """Each field's column and role; `BadDefinition` where a field is named twice."""
        found: dict[str, tuple[str, str]] = {}
        for role, columns in (("input", self.inputs), ("label", self.labels), ("meta", self.meta)):
            for field, column in (columns if isinstance(columns, dict) else {name: name for name in columns}).items():
                if field in found:
                    raise BadDefinition(f"[data] names the field {field!r} twice")
                found[field] = (column, role)
        return found


def pin_source(data: Data, name: str, beside: Path, home: Path, engine: str = "local") -> Source:
    """Write `home/loaders/sources/<name>.toml`, pinned by the rows that the files have now, and build the source into
    the cache. A file of that name stays as it is where it says the same, and is an error where it does not."""
    if not re.fullmatch("[a-z0-9_]+", name):
        raise BadDefinition(f"[data] the source's name {name!r}: use lower-case letters, digits and _")
    pins, folders = (hub_pins(data.hub, data.revision, data.files), ()) if data.hub else _local_pins(data, beside)
    paths = {pin.name: fetch_file(pin, folders) for pin in pins}
    columns = data.columns()
    with opened(paths[pins[0].name], pins[0].name) as file:
        schema = _schema(columns, file.schema_arrow, pins[0].name)
    path = home / "loaders" / "sources" / f"{name}.toml"
    if name in (known := sources()) and known[name].path.resolve() != path.resolve():
        raise BadDefinition(f"a source named {name!r} is there already ({known[name].path}): give yours another name")
    draft = SourceDefinition(
        name=name,
        version=1,
        title=data.title or (f"{data.hub} (Hugging Face Hub)" if data.hub else "Files of one's own"),
        licence=data.licence,
        citation=data.citation,
        homepage=f"https://huggingface.co/datasets/{data.hub}" if data.hub else "",
        fields=[FieldPin(**record) for record in schema.records()],
        distributions=[
            Distribution(
                name=data.hub or "files",
                reader="parquet",
                options={"columns": {field: column for field, (column, _) in columns.items()}},
                files=pins,
            )
        ],
    )
    with locked(lock_elsewhere(path), str(path)):
        return _known(draft, path) if path.exists() else _made(draft, path, engine)


def _known(draft: SourceDefinition, path: Path) -> Source:
    known = read_source(path)
    if known.definition.model_copy(update={"rows": 0, "digest": ""}) != draft:
        raise BadDefinition(
            f"{path} defines {draft.name!r} by other data: give the source another name, or remove that"
        )
    return known


def _made(draft: SourceDefinition, path: Path, engine: str) -> Source:
    """The source, built into the cache, and its file."""
    made = cache_root() / "sources" / f".{draft.name}-own.arrow.{os.getpid()}.tmp"
    with plain_disk_errors(made):
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            rows, digest = Source(draft, path).write(made, engine=engine)
            if not rows:
                files = ", ".join(pin.name for pin in draft.distributions[0].files)
                raise BadData(f"[data] no rows in {files}: nothing to make a source of")
            pinned = Source(draft.model_copy(update={"rows": rows, "digest": digest}), path)
            keep(made, pinned.cached_at)
        finally:
            made.unlink(missing_ok=True)
    write_atomically(path, _toml(pinned.definition))
    return pinned


def _toml(definition: SourceDefinition) -> bytes:
    import tomli_w

    return tomli_w.dumps(definition.model_dump(exclude_defaults=True)).encode()


def _local_pins(data: Data, beside: Path) -> tuple[list[FilePin], tuple[Path, ...]]:
    """Files of this machine; a relative pattern begins beside the draft."""
    found: set[Path] = set()
    for pattern in data.files:
        base = Path(pattern)
        anchor, rest = (Path(base.anchor), base.relative_to(base.anchor)) if base.is_absolute() else (beside, base)
        try:
            matching = [path for path in anchor.glob(str(rest)) if path.is_file()]
        except (ValueError, IndexError) as error:  # what pathlib says of "**x" and of "."
            raise BadDefinition(f"[data] {pattern!r} is no pattern of files") from error
        if not matching:
            raise Unavailable(f"[data] no file {anchor / rest}")
        found.update(matching)
    if len({path.name for path in found}) < len(found):
        raise BadDefinition("[data] two files have the same name: rename one, a source's files are known by name")
    pins = [
        FilePin(name=path.name, sha256=file_sha256(path), bytes=path.stat().st_size)
        for path in sorted(found, key=lambda path: path.name)
    ]
    return pins, tuple(sorted({path.parent for path in found}))


def _schema(columns: dict[str, tuple[str, str]], found: pa.Schema, file: str) -> Schema:
    """The fields, with the types that the first file has."""
    fields = []
    for name, (column, role) in columns.items():
        if column not in found.names:
            raise BadDefinition(f"[data] {file} has no column {column!r} (it has {', '.join(found.names)})")
        fields.append(Field(name, _type(found.field(column).type, column), role))  # type: ignore[arg-type]
    return Schema(tuple(fields))


def _type(kind: pa.DataType, column: str) -> str:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind) and str(kind.value_type) in ("uint8", "int64", "float"):
        item = {"float": "float32"}.get(str(kind.value_type), str(kind.value_type))
        return f"{item}[{kind.list_size}]"
    for test, name in (
        (pa.types.is_boolean, "bool"),
        (pa.types.is_integer, "int64"),
        (pa.types.is_floating, "float64"),
        (pa.types.is_string, "string"),
        (pa.types.is_large_string, "string"),
        (pa.types.is_binary, "bytes"),
        (pa.types.is_large_binary, "bytes"),
    ):
        if test(kind):
            return name
    plain = re.sub(r"\s+", " ", str(kind))[:60]
    raise BadDefinition(f"[data] column {column!r} is {plain}: use columns of numbers, text, bytes or fixed-size lists")
