"""Rows in WebDataset shards: the manifest and the index of each row's byte range that `export/webdataset.py` wrote, and
the samples. Pickles are never read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pydantic
from numpy.typing import NDArray

from ...core.documents import parse_json
from ...core.errors import BadData, get_first_line
from ...core.files import get_cache_root
from ...splits.schema import Field, Schema
from ..cache.store import load_or_write
from ..export.content import TYPES
from ..export.webdataset import FORMAT, NPY_ITEMS, make_npy_header, name_member_extension
from .files import File, coalesce_ranges, read_whole_file
from .part import Store
from .sources import MANIFEST, ExportFolder

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = NDArray[np.int64]

_LONGEST_MANIFEST = 1 << 26
"""In bytes: a record of a shard takes about 150."""

_OPTIONAL = ("weight", "group", "severity", "label", "true_label", "source_check")
_MAY_BE_NULL = ("label", "true_label", "source_check")


@dataclass(frozen=True)
class Export:
    """An export: the content of manifest.json; an index with a row for each sample; the shards in the manifest's
    order."""

    name: str
    manifest: dict[str, Any]
    index: pa.Table
    shards: tuple[File, ...]


def _check_file_name(name: str) -> str:
    if not name.isprintable() or "/" in name or "\\" in name or name in ("", ".", ".."):
        raise ValueError("not a file name")
    return name


class _FileRecord(pydantic.BaseModel, strict=True):
    file: Annotated[str, pydantic.AfterValidator(_check_file_name)]
    bytes: Annotated[int, pydantic.Field(ge=0, lt=1 << 62)]
    sha256: Annotated[str, pydantic.Field(pattern="^[0-9a-f]{64}$")]


class _FileRecords(pydantic.BaseModel):
    index: _FileRecord
    shards: Annotated[list[_FileRecord], pydantic.Field(min_length=1)]


def read_export(folder: ExportFolder, schema: Schema, label: str, most: int) -> Export:
    """Open the export in a folder, of rows of a source with this schema, label and number of rows. The index is checked
    by sha256 and cached; the shards are not read yet.

    Raises `BadData` for a manifest or an index that is damaged or of another version."""
    file = folder.file(MANIFEST, None)
    if file.size > _LONGEST_MANIFEST:
        raise BadData(f"{file.name} has {file.size:,} bytes: it is not the manifest of an export")
    damaged = f"{folder.name}: manifest.json is damaged"
    try:
        manifest = parse_json(read_whole_file(file), dict)
        if manifest.get("format") != FORMAT:
            raise BadData(
                f"{folder.name} has format {manifest.get('format')!r}, but this version streams {FORMAT}: export the "
                "part again"
            )
        records = _FileRecords.model_validate(manifest)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise BadData(f"{damaged}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except ValueError as error:
        raise BadData(f"{damaged}: {get_first_line(error)}") from error
    shards = tuple(folder.file(record.file, record.bytes) for record in records.shards)
    for shard, record in zip(shards, records.shards, strict=True):
        if shard.size != record.bytes:
            raise BadData(
                f"{shard.name} has another size than in the manifest of {folder.name}: it is truncated or another file"
            )
    index, where = records.index, f"{folder.name}: {records.index.file}"

    def fetch(target: Path) -> None:
        content = read_whole_file(folder.file(index.file, index.bytes))
        if sha256(content).hexdigest() != index.sha256:
            raise BadData(f"{where} is damaged: its sha256 is not the one in manifest.json")
        target.write_bytes(content)

    types = _list_column_types(schema, label)
    cached_at = get_cache_root() / "files" / index.sha256[:2] / index.sha256
    table = load_or_write(cached_at, fetch, lambda path: _read_index(path, where, types, most))
    return Export(folder.name, manifest, table, shards)


def _list_column_types(schema: Schema, label: str) -> dict[str, tuple[str, ...]]:
    """The possible columns of an index of rows with this schema, and their types."""
    members = {name_member_extension(field) for field in schema.fields}
    places = [f"{member}.{what}" for member in members for what in ("offset", "length")]
    labels = dict.fromkeys(("label", "true_label"), (str(schema[label].arrow()),))
    return TYPES | dict.fromkeys((*places, "shard", "offset", "length"), ("int64",)) | labels


def _read_index(path: Path, where: str, types: Mapping[str, tuple[str, ...]], most: int) -> pa.Table:
    """The columns of an index. Raises `BadData` for an invalid column, or for more than `most` rows."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            if file.metadata.num_rows > most:
                raise BadData(f"{where} has {file.metadata.num_rows:,} rows, more than the source ({most:,})")
            index = file.read([name for name in types if name in file.schema_arrow.names])
        if len(set(index.column_names)) < index.num_columns:
            raise ValueError("a column occurs twice")
    except FileNotFoundError:  # another process has just removed it from the cache
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadData(f"{where} is not an index: {get_first_line(error)}") from error
    absent = [name for name in sorted(types) if name not in index.column_names and name not in _OPTIONAL]
    if absent:
        raise BadData(f"{where} lacks the columns {', '.join(absent)}: export the part again")
    for name in index.column_names:
        if str(index[name].type) not in types[name] or (index[name].null_count and name not in _MAY_BE_NULL):
            raise BadData(f"{where}: column {name} is not {' or '.join(types[name])}: export the part again")
    if index.num_rows and pc.min(index["occurrence"]).as_py() < 0:
        raise BadData(f"{where}: column occurrence has negative numbers: export the part again")
    return index


@dataclass(frozen=True)
class ShardStore(Store):
    """Samples, one for each row. `index` has arrays of shape (rows,): `shard`, and `offset` and `length` in bytes of
    the sample and of each member (`json.offset`). `true_labels` has the source's label where a sample has another, and
    is null elsewhere."""

    schema: Schema
    label: str
    index: dict[str, Numbers]
    true_labels: pa.ChunkedArray | None = None

    least_block: ClassVar[int] = 1 << 20

    @classmethod
    def open(cls, index: pa.Table, files: Sequence[File], schema: Schema, label: str) -> ShardStore:
        """Make the store of an index with the columns that `to_webdataset` writes. Raises `BadData` if it points
        outside a shard."""
        members = sorted({name_member_extension(field) for field in schema.fields})
        names = ["shard", "offset", "length"]
        names += [f"{member}.{what}" for member in members for what in ("offset", "length")]
        columns: dict[str, Numbers] = {name: index[name].to_numpy().astype(np.int64) for name in names}
        true_labels = index["true_label"] if "true_label" in index.column_names else None
        shard, start, length = columns["shard"], columns["offset"], columns["length"]
        ends = np.array([file.size for file in files], np.int64)
        wrong = (shard < 0) | (shard >= len(ends)) | (start < 0) | (length < 0)
        if not wrong.any():
            # Compare differences, since sums of large numbers could overflow.
            wrong = length > ends[shard] - start
            for member in members:
                inside, member_length = columns[f"{member}.offset"] - start, columns[f"{member}.length"]
                wrong |= (inside < 0) | (member_length < 0) | (member_length > length - inside)
        if wrong.any():
            raise BadData(f"the index of {files[0].name} points outside the shards: export the part again")
        occurrences = index["occurrence"].to_numpy().astype(np.int64)
        return cls(tuple(files), length, occurrences, schema, label, columns, true_labels)

    def describe_location(self, row: int) -> str:
        return f"{self.files[self.index['shard'][row]].name}, offset {self.index['offset'][row]}"

    def read(self, rows: Numbers, cancel: Event) -> pa.Table:
        import pyarrow.compute as pc

        fields = self.schema.fields
        contents = self._read_members(rows, sorted({name_member_extension(field) for field in fields}), cancel)
        table = decode_samples(contents, fields, lambda row: self.describe_location(int(rows[row])))
        if self.true_labels is None:
            return table
        labels = pc.coalesce(self.true_labels.take(rows), table[self.label])
        return table.set_column(table.column_names.index(self.label), self.label, labels)

    def _read_members(self, rows: Numbers, members: list[str], cancel: Event) -> dict[str, list[bytes]]:
        """The members' bytes, row after row; copied, so that the bytes between rows are released."""
        contents = {member: [b""] * len(rows) for member in members}
        places = {name: values[rows] for name, values in self.index.items()}
        for file, start, stop, turns in coalesce_ranges(places["shard"], places["offset"], places["length"]):
            content = memoryview(self.files[file].read(start, stop, cancel))
            for member in members:
                starts = (places[f"{member}.offset"][turns] - start).tolist()
                lengths = places[f"{member}.length"][turns].tolist()
                for turn, first, length in zip(turns.tolist(), starts, lengths, strict=True):
                    contents[member][turn] = bytes(content[first : first + length])
        return contents


def decode_samples(
    members: Mapping[str, Sequence[bytes]], fields: Sequence[Field], locate: Callable[[int], str]
) -> pa.Table:
    """Decode the fields of rows from the contents of their members, by extension: `json` for scalars, `<field>.npy` for
    a tensor, `<field>.bin` for bytes. Raises `BadData`, with `locate(row)`, for an invalid row."""
    import pyarrow as pa

    def decode(row: int, read: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except ValueError as error:
            raise BadData(f"{locate(row)}: the sample is damaged: {get_first_line(error)}") from error

    records = [decode(row, parse_json, content, dict) for row, content in enumerate(members.get("json", ()))]
    columns: dict[str, Any] = {}
    for field in fields:
        contents = members[name_member_extension(field)]
        if field.shape:
            header = make_npy_header(field)
            tensors = [decode(row, _read_tensor, content, field, header) for row, content in enumerate(contents)]
            flat = pa.array(np.frombuffer(b"".join(tensors), NPY_ITEMS[field.item]))
            columns[field.name] = pa.FixedSizeListArray.from_arrays(flat, math.prod(field.shape))
        elif field.item == "bytes":
            columns[field.name] = pa.array(contents, field.arrow())
        else:
            columns[field.name] = _make_scalar_column(field, records, locate)
    return pa.table(columns)


def _read_tensor(content: bytes, field: Field, header: bytes) -> bytes:
    """The elements of an npy file. NumPy does not read it, since it would allocate as much memory as its header
    claims."""
    length = math.prod(field.shape) * np.dtype(NPY_ITEMS[field.item]).itemsize
    if not content.startswith(header) or len(content) != len(header) + length:
        raise ValueError(f"field {field.name!r} is not an npy file of {field.type}")
    return content[len(header) :]


def _make_scalar_column(field: Field, records: list[dict[str, Any]], locate: Callable[[int], str]) -> pa.Array:
    import pyarrow as pa

    def convert(some: list[dict[str, Any]]) -> pa.Array | None:
        try:
            column = pa.array([record[field.name] for record in some], field.arrow())
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError, TypeError, OverflowError, UnicodeEncodeError):
            return None
        return None if column.null_count else column

    if (column := convert(records)) is not None:
        return column
    wrong = next(row for row, record in enumerate(records) if convert([record]) is None)
    raise BadData(f"{locate(wrong)}: the sample is damaged: field {field.name!r} is not {field.type}")
