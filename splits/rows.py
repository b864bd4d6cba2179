"""What a row is, byte for byte: its canonical bytes, its id (over inputs) and its digest (over all fields).

Canonical bytes of a row: one version byte, then its fields sorted by name; each field is its name and its type (both
as a 16-bit length and UTF-8), then the value. Numbers are 8 bytes little-endian (tensors: their elements in C order;
a label of several may hold NaN, where one is not known), text and bytes carry a 64-bit length first. Nothing in it
depends on file order, container or platform.

Row id: the first 8 bytes, big-endian, of sha256(canonical bytes of the *input* fields, then the 64-bit number of
the occurrence among rows of equal inputs, counted in the order of their full bytes). Row digest: sha256 of the
canonical bytes of all fields; its first 8 bytes are the row's `check`. The digest of a set of rows is sha256 over
its sorted row digests, so it does not depend on order or sharding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadData
from .schema import Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa

_VERSION = b"\x01"
_CHUNK = 65_536
_LONG = 512
"""Bytes of a row, on average, from which rows are put together one by one."""

Bytes = NDArray[np.uint8]


def _header(field: Field) -> Bytes:
    name, kind = field.name.encode(), field.type.encode()
    head = struct.pack("<H", len(name)) + name + struct.pack("<H", len(kind)) + kind
    return np.frombuffer(head, np.uint8)


def _fixed(field: Field, column: pa.ChunkedArray) -> Bytes:
    """The values of a fixed-width column as bytes, shape (rows, width)."""
    import pyarrow.compute as pc

    rows = len(column)
    flat = pc.list_flatten(column) if field.shape else column
    values = flat.to_numpy()
    if field.item in ("float64", "float32"):
        unknown = np.isnan(values) & (field.role == "label" and bool(field.shape))
        if not (np.isfinite(values) | unknown).all():
            raise BadData(f"field {field.name!r} holds NaN or infinity: no canonical bytes; leave those rows out")
        values = np.where(unknown, np.nan, values + 0.0).astype(values.dtype)  # -0.0 becomes 0.0, and any NaN the same
    dtype = {"bool": "u1", "uint8": "u1", "float32": "<f4", "float64": "<f8", "uint64": "<u8"}.get(field.item, "<i8")
    return np.ascontiguousarray(values.astype(dtype)).view(np.uint8).reshape(rows, -1)


def ragged(column: pa.ChunkedArray) -> tuple[Bytes, NDArray[np.int64]]:
    """The bytes of a text or binary column and the offsets of its values, shape (rows + 1,)."""
    import pyarrow as pa

    wide = column.cast(pa.large_binary()).combine_chunks()
    if isinstance(wide, pa.ChunkedArray):
        wide = pa.concat_arrays(wide.chunks) if wide.num_chunks else pa.array([], pa.large_binary())
    _, offsets, data = wide.buffers()
    bounds = (
        np.frombuffer(offsets, np.int64)[wide.offset : wide.offset + len(wide) + 1]
        if len(wide)
        else np.zeros(1, np.int64)
    )
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return content, bounds


def _write(out: Bytes, at: NDArray[np.int64], block: Bytes) -> None:
    """Write one row of `block` (or the one constant row it is) at each offset, and move the offsets on."""
    width = block.shape[-1]
    out[at[:, None] + np.arange(width)] = block
    at += width


def _canonical(table: pa.Table, fields: tuple[Field, ...]) -> tuple[Bytes, NDArray[np.int64]]:
    """The rows' canonical bytes, end to end, and their offsets, shape (rows + 1,)."""
    rows = table.num_rows
    pieces: list[tuple[Bytes, Bytes | None, tuple[Bytes, NDArray[np.int64]] | None]] = []
    lengths = np.full(rows, len(_VERSION), np.int64)
    for field in sorted(fields, key=lambda field: field.name):
        head = _header(field)
        if field.item in ("string", "bytes"):
            texts = ragged(table[field.name])
            pieces.append((head, None, texts))
            lengths += len(head) + 8 + np.diff(texts[1])
        else:
            fixed = _fixed(field, table[field.name])
            pieces.append((head, fixed, None))
            lengths += len(head) + fixed.shape[1]
    bounds = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    out = np.empty(bounds[-1], np.uint8)
    at = bounds[:-1].copy()
    _write(out, at, np.frombuffer(_VERSION, np.uint8))
    for head, block, text in pieces:
        _write(out, at, head)
        if block is not None:
            _write(out, at, block)
        elif text is not None:
            content, offsets = text
            sizes = np.diff(offsets)
            _write(out, at, np.ascontiguousarray(sizes.astype("<i8")).view(np.uint8).reshape(rows, 8))
            total = int(offsets[-1] - offsets[0])
            target = np.repeat(at - (offsets[:-1] - offsets[0]), sizes) + np.arange(total)
            out[target] = content[offsets[0] : offsets[-1]]
            at += sizes
    return out, bounds


def _chunks(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, _CHUNK):
        yield table.slice(start, _CHUNK)


def canonical_rows(table: pa.Table, fields: tuple[Field, ...]) -> Iterator[memoryview]:
    """The canonical bytes of each row, in the table's order."""
    for chunk in _chunks(table):
        data, bounds = _canonical(chunk, fields)
        view = memoryview(data)  # type: ignore[arg-type]
        yield from (view[start:stop] for start, stop in pairwise(bounds.tolist()))


def _hashes(table: pa.Table, fields: tuple[Field, ...], ending: bytes = b"") -> Bytes:
    """sha256 of the canonical bytes of each row and `ending`, shape (rows, 32)."""
    if table.nbytes > _LONG * table.num_rows:
        return _hashes_of_long(table, fields, ending)
    found = np.empty((table.num_rows, 32), np.uint8)
    done = 0
    for chunk in _chunks(table):
        data, bounds = _canonical(chunk, fields)
        # Slices of bytes, in one comprehension: a third faster than memory views out of a generator.
        raw, marks = data.tobytes(), bounds.tolist()
        joined = b"".join([sha256(raw[start:stop] + ending).digest() for start, stop in pairwise(marks)])
        found[done : done + chunk.num_rows] = np.frombuffer(joined, np.uint8).reshape(-1, 32)
        done += chunk.num_rows
    return found


def _hashes_of_long(table: pa.Table, fields: tuple[Field, ...], ending: bytes) -> Bytes:
    """As `_hashes`, for rows of many bytes, such as pictures: put together one by one, not by an index of bytes."""
    found = np.empty((table.num_rows, 32), np.uint8)
    rows = max(1, _CHUNK * _LONG * table.num_rows // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        chunk = table.slice(start, rows)
        columns: list[Sequence[bytes | memoryview]] = []
        for field in sorted(fields, key=lambda field: field.name):
            head = _header(field).tobytes()
            if field.item in ("string", "bytes"):
                content, bounds = ragged(chunk[field.name])
                view, ends = content.data, bounds.tolist()
                columns.append([head + struct.pack("<q", stop - start) for start, stop in pairwise(ends)])
                columns.append([view[start:stop] for start, stop in pairwise(ends)])
            else:
                block = _fixed(field, chunk[field.name])
                columns.append([head + row.tobytes() for row in block])
        joined = b"".join([sha256(b"".join((_VERSION, *row, ending))).digest() for row in zip(*columns, strict=True)])
        found[start : start + chunk.num_rows] = np.frombuffer(joined, np.uint8).reshape(-1, 32)
    return found


def row_digests(table: pa.Table, schema: Schema) -> Bytes:
    """sha256 of each row over all its fields, shape (rows, 32)."""
    return _hashes(table, schema.fields)


def value_digests(table: pa.Table, field: Field) -> Bytes:
    """sha256 of each row's value of one field, shape (rows, 32)."""
    return _hashes(table, (field,))


def heads(digests: Bytes) -> NDArray[np.uint64]:
    """The first 8 bytes of each digest as a big-endian number: a row's `check`."""
    return np.ascontiguousarray(digests[:, :8]).view(">u8").ravel().astype(np.uint64)


def set_digest(digests: Bytes) -> str:
    """The digest of a set of rows, as hexadecimal: sha256 over the sorted row digests (repeats count)."""
    ordered = np.sort(np.ascontiguousarray(digests).view("S32").ravel()) if len(digests) else digests
    # NumPy's "S" comparison ignores trailing zero bytes; at one fixed width that never confuses two values.
    return sha256(ordered.view(np.uint8).data).hexdigest()


def row_ids(table: pa.Table, schema: Schema) -> NDArray[np.uint64]:
    """The id of each row, shape (rows,). Raises `BadData` where two rows collide (a 64-bit accident)."""
    ids = first_ids(table, schema)
    settle_repeats(table, schema, ids)
    return ids


def first_ids(table: pa.Table, schema: Schema) -> NDArray[np.uint64]:
    """The id that each row has if no other row of equal inputs comes before it, shape (rows,)."""
    return heads(_hashes(table, schema.of_role("input"), struct.pack("<Q", 0)))


def settle_repeats(table: pa.Table, schema: Schema, ids: NDArray[np.uint64]) -> None:
    """Turn the `first_ids` of a whole source into its row ids: rows of equal inputs get their occurrence numbers.
    Changes `ids`; raises `BadData` where two different rows collide."""
    pairs = _repeats(ids)
    if pairs.size:
        _number_repeats(table, schema, ids, np.unique(pairs))
        pairs = _repeats(ids)
    if pairs.size:
        one, other = pairs[0]
        raise BadData(
            f"two different rows have the same 64-bit row id, {ids[one]:016x}: rows {one} and {other} in the order in "
            "which they are read, from 0; leave one out"
        )


def _repeats(ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The places of equal ids, by twos: shape (repeats, 2)."""
    order = np.argsort(ids, kind="stable")
    second = np.flatnonzero(ids[order][1:] == ids[order][:-1]) + 1
    return np.stack([order[second - 1], order[second]], axis=1)


def _number_repeats(table: pa.Table, schema: Schema, ids: NDArray[np.uint64], suspects: NDArray[Any]) -> None:
    """Give rows of equal inputs their occurrence numbers, in the order of their full bytes. Changes `ids`."""
    some = table.take(suspects)
    inputs = [bytes(row) for row in canonical_rows(some, schema.of_role("input"))]
    full = [bytes(row) for row in canonical_rows(some, schema.fields)]
    seen: dict[bytes, int] = {}
    for place in sorted(range(len(full)), key=lambda place: (inputs[place], full[place])):
        occurrence = seen.get(inputs[place], 0)
        seen[inputs[place]] = occurrence + 1
        head = sha256(inputs[place] + struct.pack("<Q", occurrence)).digest()[:8]
        ids[suspects[place]] = int.from_bytes(head, "big")


def numbered_ids(table: pa.Table, schema: Schema, occurrences: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The row ids of rows whose occurrence numbers are known, shape (rows,); see `splits/rows.py`."""
    inputs = canonical_rows(table, schema.of_role("input"))
    pairs = zip(inputs, occurrences.tolist(), strict=True)
    joined = b"".join([sha256(b"".join((row, struct.pack("<Q", number)))).digest()[:8] for row, number in pairs])
    return np.frombuffer(joined, ">u8").astype(np.uint64)


def occurrence_numbers(table: pa.Table, schema: Schema, row_ids: NDArray[np.uint64], most: int) -> NDArray[np.int64]:
    """Which occurrence, counted from 0, gives each row its known id, shape (rows,). `most` is the number of rows that
    there can be of equal inputs. Raises `BadData` for a row that no number fits."""
    numbers = np.zeros(table.num_rows, np.int64)
    for place in np.flatnonzero(numbered_ids(table, schema, numbers) != row_ids).tolist():
        (row,) = canonical_rows(table.slice(place, 1), schema.of_role("input"))
        numbers[place] = occurrence_of(bytes(row), int(row_ids[place]), most)
    return numbers


def occurrence_of(inputs: bytes, row_id: int, most: int) -> int:
    """The occurrence number below `most` with which canonical input bytes have this id; `BadData` if none has."""
    wanted = row_id.to_bytes(8, "big")
    for number in range(most):
        if sha256(inputs + struct.pack("<Q", number)).digest()[:8] == wanted:
            return number
    raise BadData(f"row {row_id:016x} does not recompute from its inputs")
