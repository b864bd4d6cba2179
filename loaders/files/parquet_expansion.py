"""How many bytes columns of a Parquet file take when they are decoded. A dictionary stores equal texts once, so a small
file can hold more than memory does, whatever its footer says of sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...core.limits import may_expand
from .bounded_stream import refuse_bomb

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_ROWS = 1 << 16
_UNKNOWN = 1 << 60


def refuse_expansion(
    reopen: Callable[[list[str]], pq.ParquetFile],
    metadata: pq.FileMetaData,
    columns: Iterable[str],
    size: int,
    where: str,
) -> None:
    """Raise `BadData` if columns of a file of `size` bytes decode to far more (`core/limits.py`). reopen: opens the
    file, with the columns of a list read as dictionaries."""
    heads, most, texts = tuple(columns), 0, []
    for group in range(metadata.num_row_groups):
        chunks = metadata.row_group(group)
        for index in range(chunks.num_columns):
            chunk = chunks.column(index)
            path = chunk.path_in_schema
            if any(path == head or path.startswith(f"{head}.") for head in heads):
                width = _WIDTHS.get(chunk.physical_type) or metadata.schema.column(index).length
                most += chunk.num_values * max(width, 4) + max(0, chunk.total_uncompressed_size)
                if chunk.physical_type == "BYTE_ARRAY":
                    texts.append((group, path, chunk.num_values))
    refuse_bomb(size, most, where)
    if may_expand(size, most + sum(_find_longest(reopen, group, path) * rows for group, path, rows in texts)):
        return
    for group, path, _ in texts:
        for leaf in _iterate_leaves(reopen([path]), group, path, _ROWS):
            lengths = pc.binary_length(leaf.dictionary).cast(pa.int64())
            most += pc.sum(lengths.take(leaf.indices)).as_py() or 0
            refuse_bomb(size, most, f"{where}: column {path}")


def _find_longest(reopen: Callable[[list[str]], pq.ParquetFile], group: int, path: str) -> int:
    """The length of the longest text in the dictionary of a column chunk, which comes with the first value; more than
    any bound if the first row is an empty list."""
    leaf = next(_iterate_leaves(reopen([path]), group, path, 1), None)
    return _UNKNOWN if leaf is None or not len(leaf) else pc.max(pc.binary_length(leaf.dictionary)).as_py() or 0


def _iterate_leaves(file: pq.ParquetFile, group: int, path: str, rows: int) -> Iterator[pa.DictionaryArray]:
    for batch in file.iter_batches(rows, [group], [path], use_threads=False):
        leaf = batch.column(0)
        while not pa.types.is_dictionary(leaf.type) and leaf.type.num_fields:
            leaf = leaf.field(0) if pa.types.is_struct(leaf.type) else leaf.flatten()
        if pa.types.is_dictionary(leaf.type):
            yield leaf
