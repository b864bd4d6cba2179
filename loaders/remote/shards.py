"""Rows in WebDataset shards with an index of each row's byte range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData
from ...splits.schema import Field, Schema
from . import File, samples
from .cached_files import forget_files
from .ranges import coalesce_ranges

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class ShardStore:
    """Samples in `files`, one for each row: `shard`, and the `offset` and `length` in bytes of the sample and of each
    member, all of shape (rows,). `true_labels` has the source's label where a sample has another, and is masked
    elsewhere."""

    files: tuple[File, ...]
    schema: Schema
    shard: Numbers
    offset: Numbers
    length: Numbers
    members: dict[str, tuple[Numbers, Numbers]]
    occurrence: Numbers
    label: str
    true_labels: np.ma.MaskedArray[Any, Any] | None = None

    least_block = 1 << 20

    @classmethod
    def of(cls, index: pa.Table, files: Sequence[File], schema: Schema, label: str) -> ShardStore:
        """Make the store of an index with the columns that `to_webdataset` writes. Raises `BadData` if it points
        outside a shard."""
        kinds = sorted({samples.name_member_extension(field) for field in schema.fields})
        members = {
            kind: (_read_numbers(index, f"{kind}.offset"), _read_numbers(index, f"{kind}.length")) for kind in kinds
        }
        truth = None
        if "true_label" in index.column_names:
            column = index["true_label"]
            filled = column.fill_null("" if str(column.type) == "string" else 0).to_numpy()
            truth = np.ma.MaskedArray(filled, mask=column.is_null().to_numpy(zero_copy_only=False))
        store = cls(
            tuple(files),
            schema,
            _read_numbers(index, "shard"),
            _read_numbers(index, "offset"),
            _read_numbers(index, "length"),
            members,
            _read_numbers(index, "occurrence"),
            label,
            truth,
        )
        store._check_bounds()
        return store

    def _check_bounds(self) -> None:
        ends = np.array([file.size for file in self.files], np.int64)
        wrong = (self.shard < 0) | (self.shard >= len(ends)) | (self.offset < 0) | (self.length < 0)
        if not wrong.any():
            # Compare differences, since sums of large numbers could overflow.
            wrong = self.length > ends[self.shard] - self.offset
            for offset, length in self.members.values():
                inside = offset - self.offset
                wrong |= (offset < self.offset) | (length < 0) | (length > self.length - inside)
        if wrong.any():
            raise BadData(f"the index of {self.files[0].name} points outside the shards: export the part again")

    def sizes(self, rows: Numbers) -> Numbers:
        return self.length[rows]

    def occurrences(self, rows: Numbers) -> Numbers:
        return self.occurrence[rows]

    def describe_location(self, row: int) -> str:
        return f"{self.files[self.shard[row]].name}, offset {self.offset[row]}"

    def forget(self) -> None:
        forget_files(self.files)

    def read(self, rows: Numbers, fields: Sequence[Field], cancel: Event) -> pa.Table:
        contents = self._contents(rows, sorted({samples.name_member_extension(field) for field in fields}), cancel)
        table = samples.decode_samples(contents, fields, lambda row: self.describe_location(int(rows[row])))
        return self._with_true_labels(table, rows)

    def _contents(self, rows: Numbers, kinds: list[str], cancel: Event) -> dict[str, list[bytes]]:
        """The members' bytes, row after row; copied, so that the bytes between rows are released."""
        contents = {kind: [b""] * len(rows) for kind in kinds}
        for byte_range in coalesce_ranges(self.shard[rows], self.offset[rows], self.length[rows]):
            content = memoryview(self.files[byte_range.file].read(byte_range.start, byte_range.stop, cancel))
            for kind in kinds:
                starts, lengths = (numbers[rows[byte_range.rows]].tolist() for numbers in self.members[kind])
                for turn, start, length in zip(byte_range.rows.tolist(), starts, lengths, strict=True):
                    contents[kind][turn] = bytes(content[start - byte_range.start : start - byte_range.start + length])
        return contents

    def _with_true_labels(self, table: pa.Table, rows: Numbers) -> pa.Table:
        import pyarrow as pa

        if self.true_labels is None or self.label not in table.column_names:
            return table
        label_index = table.column_names.index(self.label)
        given, truth = table[self.label].to_numpy(), self.true_labels[rows]
        values = np.where(np.ma.getmaskarray(truth), given, truth.data)
        return table.set_column(label_index, self.label, pa.array(values, self.schema[self.label].arrow()))


def _read_numbers(index: pa.Table, name: str) -> Numbers:
    numbers: Numbers = index[name].to_numpy().astype(np.int64)
    return numbers
