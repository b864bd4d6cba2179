"""Build a source that is larger than memory: shard by shard, on one core, many, or a cluster.

A reader that has `shards(files, **options)` and `read_shard(shard)` is read in pieces. Each piece's rows are hashed in
the engine's workers (nearly all of the work), and appended in this process to files on disk, which are then put into
the order of the row ids. Every engine gives the same bytes, since the rows are ordered by id.

A reader that has `pieces(files, **options)` yields its tables one after the other, as an archive has to be read; they
are hashed in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.engines import map_jobs
from ...core.errors import BadDefinition
from ...core.plugins import load_module
from ...core.progress import report_progress
from ...splits.rows import (
    Bytes,
    compute_first_ids,
    compute_row_digests,
    compute_set_digest,
    get_digest_prefixes,
    mark_repeated_inputs,
    number_duplicates,
)
from ...splits.schema import Schema
from ..files.reader_errors import convert_reader_errors
from .out_of_core import ColumnFiles

if TYPE_CHECKING:
    import pyarrow as pa


def can_read_in_pieces(reader: ModuleType) -> bool:
    """Whether a reader can return its rows piece by piece."""
    return hasattr(reader, "pieces") or (hasattr(reader, "shards") and hasattr(reader, "read_shard"))


def build_in_pieces(
    reader: str, arguments: dict[str, Any], schema: Schema, where: str, target: Path, engine: str = "local"
) -> str:
    """Write a source's rows, in ascending row id with `row_id` and `check`, as one Arrow file `target`.

    `arguments` are the reader's `files` and options; `where` names the source in messages. Returns the digest of the
    set of rows.
    """
    ids: list[NDArray[np.uint64]] = []
    digests: list[Bytes] = []
    with ColumnFiles(schema, target) as files:
        for table, its_ids, its_digests in _iterate_pieces(reader, arguments, schema, where, engine):
            files.append(table)
            ids.append(its_ids)
            digests.append(its_digests)
        every_id = _concatenate_parts(ids, np.empty(0, np.uint64))
        every_digest = _concatenate_parts(digests, np.empty((0, 32), np.uint8))
        repeated = np.sort(every_id[number_duplicates(files.table(), schema, every_id)])
        order = np.argsort(every_id)
        digest, checks = compute_set_digest(every_digest), get_digest_prefixes(every_digest)
        del every_digest  # a third of the memory at this point
        added = {"row_id": every_id[order], "check": checks[order]}
        files.write(order, added, target, partial(mark_repeated_inputs, row_ids=repeated))
        return digest


def add_schema(call: Callable[..., Any], arguments: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the arguments of a reader's function: its own, and the source's schema if it has that parameter."""
    takes_schema = "schema" in signature(call).parameters
    return {**arguments, "schema": schema} if takes_schema and "schema" not in arguments else arguments


_Piece = tuple["pa.Table", NDArray[np.uint64], Bytes]


def _iterate_pieces(
    reader: str, arguments: dict[str, Any], schema: Schema, where: str, engine: str
) -> Iterator[_Piece]:
    """Yield each piece's rows, with their ids (as first occurrences) and digests."""
    with convert_reader_errors("its data"):
        yield from _read_pieces(reader, arguments, schema, where, engine)


def _read_pieces(reader: str, arguments: dict[str, Any], schema: Schema, where: str, engine: str) -> Iterator[_Piece]:
    reader_module = load_module("loaders/readers", reader, "reader")
    call = reader_module.pieces if hasattr(reader_module, "pieces") else reader_module.shards
    try:
        pieces = call(**add_schema(call, arguments, schema))
    except TypeError as error:
        raise BadDefinition(f"{where}: {error}") from error
    if hasattr(reader_module, "pieces"):
        rows = 0
        for piece in pieces:
            table = schema.conform(piece, where)
            yield table, compute_first_ids(table, schema), compute_row_digests(table, schema)
            report_progress("rows read", rows := rows + table.num_rows)
        report_progress("rows read", rows, rows)
        return
    if engine == "local":
        for done, shard in enumerate(pieces):
            report_progress("shards", done, len(pieces))
            table = schema.conform(reader_module.read_shard(shard), where)
            yield table, compute_first_ids(table, schema), compute_row_digests(table, schema)
        report_progress("shards", len(pieces), len(pieces))
        return
    # Rows that other processes read are read again here, which is faster than sending them.
    hashed = map_jobs(engine, partial(_hash_piece, reader, schema, where), pieces)
    for done, (shard, (its_ids, its_digests)) in enumerate(zip(pieces, hashed, strict=True)):
        report_progress("shards", done, len(pieces))
        yield schema.conform(reader_module.read_shard(shard), where), its_ids, its_digests
    report_progress("shards", len(pieces), len(pieces))


def _concatenate_parts(parts: list[NDArray[Any]], none: NDArray[Any]) -> NDArray[Any]:
    """Concatenate the parts. Empties the list, so that they are not in memory twice for long."""
    array = np.concatenate([none, *parts])
    parts.clear()
    return array


def _hash_piece(reader: str, schema: Schema, where: str, piece: Any) -> tuple[NDArray[np.uint64], Bytes]:
    """One piece's ids (as first occurrences) and digests."""
    read: Callable[[Any], pa.Table] = load_module("loaders/readers", reader, "reader").read_shard
    table = schema.conform(read(piece), where)
    return compute_first_ids(table, schema), compute_row_digests(table, schema)
