"""Find a part's rows in a stream of rows, by check and id.

A row's check selects the part's rows that it can be; its inputs and an occurrence number then have to give that row's
id. Rows with the same check are equal in all fields, so their assignment to occurrence numbers does not matter.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...splits.rows import compute_first_ids, compute_row_digests, get_digest_prefixes, iterate_canonical_rows
from ...splits.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa


class RowMatcher:
    """Finds the rows with these ids and checks (shape (rows,)), of a source of `most` rows, in a stream: `where` is the
    number of the row in the stream (-1 until it is found) and `occurrence` its occurrence number."""

    def __init__(self, row_ids: NDArray[np.uint64], checks: NDArray[np.uint64], schema: Schema, most: int) -> None:
        self.where = np.full(len(row_ids), -1, np.int64)
        self.occurrence = np.zeros(len(row_ids), np.int64)
        self._row_ids, self._schema, self._most = row_ids, schema, most
        self._order = np.argsort(checks, kind="stable")
        self._checks = checks[self._order]
        self._repeated: dict[int, list[int]] = {}

    @property
    def missing(self) -> NDArray[np.int64]:
        """Return the part's rows that were not found yet."""
        return np.flatnonzero(self.where < 0)

    def passes(self, table: pa.Table, first: int) -> NDArray[np.int64]:
        """Process rows with all fields of the source, numbered from `first`. Returns the part's rows that were
        found."""
        checks = get_digest_prefixes(compute_row_digests(table, self._schema))
        begins = np.searchsorted(self._checks, checks, "left")
        counts = np.searchsorted(self._checks, checks, "right") - begins
        hits = np.flatnonzero(counts)
        if not len(hits):
            return hits
        some = table.take(hits)
        ids = compute_first_ids(some, self._schema)
        part_rows = self._order[begins[hits]]
        plain = (counts[hits] == 1) & (self._row_ids[part_rows] == ids)
        new = plain & (self.where[part_rows] < 0)
        self.where[part_rows[new]] = first + hits[new]
        new_rows = part_rows[new].tolist()
        for index in np.flatnonzero(~plain).tolist():
            row = int(hits[index])
            candidates = self._order[begins[row] : begins[row] + counts[row]]
            new_rows += self._passes_again(some.slice(index, 1), int(checks[row]), candidates, first + row)
        return np.unique(np.array(new_rows, np.int64))

    def _passes_again(self, row: pa.Table, check: int, candidates: NDArray[np.int64], number: int) -> list[int]:
        """Match a row whose inputs occur several times in the source: it is assigned to the next of the part's rows
        with its check, if one is left."""
        if check not in self._repeated:
            self._repeated[check] = self._numbered(row, candidates.tolist())
        next_rows, self._repeated[check] = self._repeated[check][:1], self._repeated[check][1:]
        self.where[next_rows] = number
        return next_rows

    def _numbered(self, row: pa.Table, part_rows: list[int]) -> list[int]:
        """Return those of the part's rows `part_rows` whose id is that of these inputs, and record their occurrence
        numbers."""
        (inputs,) = iterate_canonical_rows(row, self._schema.of_role("input"))
        open_ids = {int(self._row_ids[part_row]): part_row for part_row in part_rows}
        matched_rows = []
        for occurrence in range(self._most):
            head = sha256(inputs + struct.pack("<Q", occurrence)).digest()[:8]
            if (part_row := open_ids.pop(int.from_bytes(head, "big"), None)) is not None:
                self.occurrence[part_row] = occurrence
                matched_rows.append(part_row)
            if not open_ids:
                break
        return matched_rows
