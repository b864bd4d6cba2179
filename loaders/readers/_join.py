"""Columns of another table, joined to each row by a key, independent of the order of rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...core.errors import BadData
from ._cells import Cells, find_column, to_text
from ._inputs import Files, find_input
from ._table_files import read_cells
from ._table_options import Join


class LookupTable:
    """A table in memory, indexed by its key. `names` are its other columns, `source` is its file."""

    def __init__(self, files: Files, join: Join) -> None:
        source = find_input(files, join.file)
        self.own_key, its_key = join.keys
        blocks = list(read_cells(source, join.form, lambda names: range(len(names))))
        if not blocks:
            raise BadData(f"{source.name} has no rows")
        names = blocks[0].names
        table = pa.concat_tables([block.table for block in blocks], promote_options="permissive")
        at = find_column(names, its_key, source.name)
        self._keys = to_text(table[str(at)]).combine_chunks()
        self.source = source.name
        self._refuse_twins(its_key)
        others = [number for number in range(len(names)) if number != at]
        self.names: Sequence[str] = [join.prefix + names[number] for number in others]
        self._columns = [to_text(table[str(number)]).combine_chunks() for number in others]

    def _refuse_twins(self, key: str) -> None:
        counted = pc.value_counts(self._keys)
        if len(counted) < len(self._keys):
            twice = next(entry["values"].as_py() for entry in counted if entry["counts"].as_py() > 1)
            raise BadData(
                f"{self.source} has several rows whose {key!r} is {twice!r}: join by a column with unique values "
                "(`on` of `join`), or remove all but one of these rows from the file"
            )

    def columns(self, cells: Cells) -> list[pa.Array]:
        """Return its columns for some rows; null for rows whose key it does not have."""
        indices = pc.index_in(to_text(cells.column(self.own_key)), self._keys).combine_chunks()
        return [column.take(indices) for column in self._columns]
