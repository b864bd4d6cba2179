"""How many bytes columns of a Parquet file take when they are decoded. A dictionary stores equal texts once, so a small
file can hold more than memory does, whatever its footer says of sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...core.limits import may_expand
from .bounded_stream import refuse_bomb

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_ROWS = 1 << 16


def refuse_expansion(
    reopen: Callable[[list[str]], pq.ParquetFile],
    metadata: pq.FileMetaData,
    columns: Iterable[str],
    size: int,
    where: str,
) -> None:
    """Raise `BadData` if columns of a file of `size` bytes decode to far more (`core/limits.py`). reopen: opens the
    file, with the columns of a list read as dictionaries."""
    heads, total = tuple(columns), 0
    for group in range(metadata.num_row_groups):
        chunks = metadata.row_group(group)
        for index in range(chunks.num_columns):
            chunk = chunks.column(index)
            if any(chunk.path_in_schema == head or chunk.path_in_schema.startswith(f"{head}.") for head in heads):
                width = _WIDTHS.get(chunk.physical_type) or metadata.schema.column(index).length
                total += chunk.num_values * max(width, 4) + max(0, chunk.total_uncompressed_size)
                if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page:
                    total += _measure_texts(reopen, group, chunk, size)
                refuse_bomb(size, total, f"{where}: column {chunk.path_in_schema}")


def _measure_texts(reopen: Callable[[list[str]], pq.ParquetFile], group: int, chunk: Any, size: int) -> int:
    """An upper limit of the bytes of a column chunk's texts, exact if the first one would be refused."""
    path = chunk.path_in_schema
    dictionary = next(_iterate_leaves(reopen([path]), group, path, 1), None)  # the first row has all of it
    longest = pc.max(pc.binary_length(dictionary.dictionary)).as_py() if dictionary is not None else 0
    most: int = (longest or 0) * chunk.num_values
    if may_expand(size, most):
        return most
    lengths = (
        pc.sum(pc.binary_length(leaf.dictionary).cast(pa.int64()).take(leaf.indices)).as_py()
        for leaf in _iterate_leaves(reopen([path]), group, path, _ROWS)
    )
    return sum(length or 0 for length in lengths)


def _iterate_leaves(file: pq.ParquetFile, group: int, path: str, rows: int) -> Iterator[pa.DictionaryArray]:
    for batch in file.iter_batches(rows, [group], [path], use_threads=False):
        leaf = batch.column(0)
        while not pa.types.is_dictionary(leaf.type) and leaf.type.num_fields:
            leaf = leaf.field(0) if pa.types.is_struct(leaf.type) else leaf.flatten()
        if pa.types.is_dictionary(leaf.type):
            yield leaf
