"""The canonical bytes of a row, its id (over inputs) and its digest (over all fields).

Canonical bytes of a row: one version byte, then its fields sorted by name; each field is its name and its type (both
as a 16-bit length and UTF-8), then the value. Numbers are 8 bytes little-endian (tensors: their elements in C order;
a tensor label may contain NaN for unknown elements); text and bytes begin with a 64-bit length. Nothing depends on file
order, container or platform.

Row id: the first 8 bytes, big-endian, of sha256(canonical bytes of the *input* fields, then the 64-bit number of
the occurrence among rows of equal inputs, counted in the order of their full bytes). Row digest: sha256 of the
canonical bytes of all fields; its first 8 bytes are the row's `check`. The digest of a set of rows is sha256 over
its sorted row digests, so it does not depend on order or sharding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadData
from .schema import Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa

_VERSION = b"\x01"
_CHUNK, _CHUNK_BYTES = 1 << 16, 1 << 25
"""The most rows, and about the most bytes, that are encoded at a time."""

_REPEATED = b"repeated_inputs"
_MOST_REPEATED = 1 << 16
"""The most rows with repeated inputs that a table lists in its metadata."""

Bytes = NDArray[np.uint8]


def _encode_header(field: Field) -> Bytes:
    name, kind = field.name.encode(), field.type.encode()
    head = struct.pack("<H", len(name)) + name + struct.pack("<H", len(kind)) + kind
    return np.frombuffer(head, np.uint8)


def _encode_fixed(field: Field, column: pa.ChunkedArray) -> Bytes:
    """Return the values of a fixed-width column as bytes, shape (rows, width)."""
    import pyarrow.compute as pc

    rows = len(column)
    flat = pc.list_flatten(column) if field.shape else column
    values = flat.to_numpy()
    if field.item in ("float64", "float32"):
        unknown = np.isnan(values) & (field.role == "label" and bool(field.shape))
        if not (np.isfinite(values) | unknown).all():
            raise BadData(f"field {field.name!r} contains NaN or infinity: leave those rows out")
        values = np.where(unknown, np.nan, values + 0.0).astype(values.dtype)  # -0.0 becomes 0.0; one NaN for all
    dtype = {"bool": "u1", "uint8": "u1", "float32": "<f4", "float64": "<f8", "uint64": "<u8"}.get(field.item, "<i8")
    return np.ascontiguousarray(values.astype(dtype)).view(np.uint8).reshape(rows, -1)


def read_ragged_column(column: pa.ChunkedArray) -> tuple[Bytes, NDArray[np.int64]]:
    """Return the bytes of a text or binary column and the offsets of its values, shape (rows + 1,)."""
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


def _make_column(content: Bytes, bounds: NDArray[np.int64]) -> pa.Array:
    """Return concatenated values as an Arrow column of bytes."""
    import pyarrow as pa

    buffers = [None, pa.py_buffer(np.ascontiguousarray(bounds)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)


def _make_block_column(values: Bytes) -> pa.Array:
    """Return fixed-width values, shape (rows, width), as an Arrow column of bytes."""
    rows, width = values.shape
    return _make_column(values.ravel(), np.arange(rows + 1, dtype=np.int64) * width)


def _encode_rows(table: pa.Table, fields: tuple[Field, ...], ending: Bytes | None = None) -> pa.Array:
    """The rows' canonical bytes, a value of an Arrow column each; with `ending` (one for all, or one a row, shape
    (rows, width)) after each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces: list[pa.Array | pa.Scalar] = []
    constant = _VERSION  # bytes that all rows share before the next field
    for field in sorted(fields, key=lambda field: field.name):
        constant += _encode_header(field).tobytes()
        if field.item in ("string", "bytes"):
            content, bounds = read_ragged_column(table[field.name])
            sizes = np.ascontiguousarray(np.diff(bounds).astype("<i8")).view(np.uint8).reshape(-1, 8)
            values = [_make_block_column(sizes), _make_column(content, bounds)]
        else:
            values = [_make_block_column(_encode_fixed(field, table[field.name]))]
        pieces += [pa.scalar(constant, pa.large_binary()), *values]
        constant = b""
    if ending is not None:
        pieces.append(
            pa.scalar(ending.tobytes(), pa.large_binary()) if ending.ndim == 1 else _make_block_column(ending)
        )
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))


def _iterate_chunks(table: pa.Table) -> Iterator[pa.Table]:
    rows = max(1, min(_CHUNK, _CHUNK_BYTES * table.num_rows // max(1, table.nbytes)))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def iterate_canonical_rows(table: pa.Table, fields: tuple[Field, ...]) -> Iterator[bytes]:
    """Yield the canonical bytes of each row, in the table's order."""
    for chunk in _iterate_chunks(table):
        yield from _to_bytes_list(_encode_rows(chunk, fields))


def _to_bytes_list(rows: pa.Array) -> list[bytes]:
    """Return the values of a column of bytes (fastest by way of NumPy)."""
    values: list[bytes] = rows.to_numpy(zero_copy_only=False).tolist()
    return values


def _hash_rows(table: pa.Table, fields: tuple[Field, ...], ending: Bytes | None = None) -> Bytes:
    """Compute sha256 of the canonical bytes of each row and its `ending`, shape (rows, 32)."""
    digests = np.empty((table.num_rows, 32), np.uint8)
    done = 0
    for chunk in _iterate_chunks(table):
        its = ending[done : done + chunk.num_rows] if ending is not None and ending.ndim > 1 else ending
        joined = b"".join([sha256(row).digest() for row in _to_bytes_list(_encode_rows(chunk, fields, its))])
        digests[done : done + chunk.num_rows] = np.frombuffer(joined, np.uint8).reshape(-1, 32)
        done += chunk.num_rows
    return digests


def compute_row_digests(table: pa.Table, schema: Schema) -> Bytes:
    """Compute sha256 of each row over all its fields, shape (rows, 32)."""
    return _hash_rows(table, schema.fields)


def compute_value_digests(table: pa.Table, field: Field) -> Bytes:
    """Compute sha256 of each row's value of one field, shape (rows, 32)."""
    return _hash_rows(table, (field,))


def get_digest_prefixes(digests: Bytes) -> NDArray[np.uint64]:
    """Return the first 8 bytes of each digest as a big-endian number: a row's `check`."""
    return np.ascontiguousarray(digests[:, :8]).view(">u8").ravel().astype(np.uint64)


def compute_set_digest(digests: Bytes) -> str:
    """Compute the digest of a set of rows, in hexadecimal: sha256 over the sorted row digests, repeats included."""
    order = np.argsort(get_digest_prefixes(digests))
    ordered = np.ascontiguousarray(digests)[order]
    first = get_digest_prefixes(ordered)
    # Digests with equal prefixes are nearly always equal; otherwise sort all 32 bytes.
    tied = np.flatnonzero(first[1:] == first[:-1])
    if (ordered[tied] != ordered[tied + 1]).any():
        # NumPy's "S" comparison ignores trailing zero bytes; at a fixed width it still distinguishes all values.
        ordered = np.sort(ordered.view("S32").ravel())
    return sha256(ordered.view(np.uint8).data).hexdigest()


def compute_row_ids(table: pa.Table, schema: Schema) -> NDArray[np.uint64]:
    """Compute the id of each row, shape (rows,). Raises `BadData` if two rows collide (a 64-bit accident)."""
    return compute_ids_and_repeats(table, schema)[0]


def compute_ids_and_repeats(table: pa.Table, schema: Schema) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Compute the id of each row, shape (rows,), and the positions of rows whose inputs another row has too."""
    ids = compute_first_ids(table, schema)
    return ids, number_duplicates(table, schema, ids)


def compute_first_ids(table: pa.Table, schema: Schema) -> NDArray[np.uint64]:
    """Compute the id of each row as if no row with equal inputs came before it, shape (rows,)."""
    return get_digest_prefixes(_hash_rows(table, schema.of_role("input"), np.zeros(8, np.uint8)))


def number_duplicates(table: pa.Table, schema: Schema, ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Turn the first ids (`compute_first_ids`) of a complete source into its row ids: rows with equal inputs get their
    occurrence numbers. Changes `ids` in place; returns the positions of those rows. Raises `BadData` if two different
    rows collide."""
    pairs = _find_repeats(ids)
    repeated = np.unique(pairs)
    if pairs.size:
        _number_repeats(table, schema, ids, repeated)
        pairs = _find_repeats(ids)
    if pairs.size:
        first, second = pairs[0]
        raise BadData(
            f"two different rows have the same 64-bit row id, {ids[first]:016x}: rows {first} and {second} in the "
            "order in "
            "which they are read, from 0; leave one out"
        )
    return repeated


def mark_repeated_inputs(table: pa.Table, row_ids: NDArray[np.uint64]) -> pa.Table:
    """Store in a source table's metadata which rows have inputs that another row has too (unless they are many), so
    that later comparisons of inputs need not hash all rows again."""
    if len(row_ids) > _MOST_REPEATED:
        return table
    return table.replace_schema_metadata({_REPEATED: row_ids.astype("<u8").tobytes()})


def read_repeated_inputs(table: pa.Table) -> NDArray[np.uint64] | None:
    """Return the ids of a source's rows with repeated inputs; None if the table's metadata does not list them."""
    content = (table.schema.metadata or {}).get(_REPEATED)
    return None if content is None else np.frombuffer(content, "<u8").astype(np.uint64)


def digest_repeated_inputs(table: pa.Table, schema: Schema) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the positions of the rows of a source (with `row_id`) whose inputs may be repeated, and digests of their
    inputs, both shape (repeats,). All other rows have inputs of their own."""
    known = read_repeated_inputs(table)
    ids = table["row_id"].to_numpy()
    positions = np.arange(len(ids)) if known is None else np.flatnonzero(np.isin(ids, known))
    inputs = Schema(schema.of_role("input"))
    columns = table.select([field.name for field in inputs.fields])
    return positions, get_digest_prefixes(
        compute_row_digests(columns if known is None else columns.take(positions), inputs)
    )


def _find_repeats(ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return pairs of positions with equal ids, shape (repeats, 2)."""
    ordered = np.sort(ids)  # many times faster than argsort, which only repeats need
    if not (ordered[1:] == ordered[:-1]).any():
        return np.empty((0, 2), np.int64)
    order = np.argsort(ids, kind="stable")
    second = np.flatnonzero(ids[order][1:] == ids[order][:-1]) + 1
    return np.stack([order[second - 1], order[second]], axis=1)


def _number_repeats(table: pa.Table, schema: Schema, ids: NDArray[np.uint64], suspects: NDArray[Any]) -> None:
    """Number rows with equal inputs in the order of their full bytes. Changes `ids` in place."""
    some = table.take(suspects)
    inputs = list(iterate_canonical_rows(some, schema.of_role("input")))
    full = list(iterate_canonical_rows(some, schema.fields))
    seen: dict[bytes, int] = {}
    for index in sorted(range(len(full)), key=lambda index: (inputs[index], full[index])):
        occurrence = seen.get(inputs[index], 0)
        seen[inputs[index]] = occurrence + 1
        head = sha256(inputs[index] + struct.pack("<Q", occurrence)).digest()[:8]
        ids[suspects[index]] = int.from_bytes(head, "big")


def compute_numbered_ids(table: pa.Table, schema: Schema, occurrences: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Compute the row ids of rows with known occurrence numbers, shape (rows,)."""
    endings = np.ascontiguousarray(occurrences.astype("<i8")).view(np.uint8).reshape(-1, 8)
    return get_digest_prefixes(_hash_rows(table, schema.of_role("input"), endings))


def find_occurrence_numbers(
    table: pa.Table, schema: Schema, row_ids: NDArray[np.uint64], most: int
) -> NDArray[np.int64]:
    """Find the occurrence number, from 0, that gives each row its known id, shape (rows,). `most` is the largest
    possible number of rows with equal inputs. Raises `BadData` for a row that no number fits."""
    numbers = np.zeros(table.num_rows, np.int64)
    for index in np.flatnonzero(compute_numbered_ids(table, schema, numbers) != row_ids).tolist():
        (row,) = iterate_canonical_rows(table.slice(index, 1), schema.of_role("input"))
        numbers[index] = find_occurrence(row, int(row_ids[index]), most)
    return numbers


def find_occurrence(inputs: bytes, row_id: int, most: int) -> int:
    """Find the occurrence number below `most` for which canonical input bytes have this id; `BadData` if there is
    none."""
    expected = row_id.to_bytes(8, "big")
    for number in range(most):
        if sha256(inputs + struct.pack("<Q", number)).digest()[:8] == expected:
            return number
    raise BadData(f"row {row_id:016x}: the id does not match the row's inputs")
