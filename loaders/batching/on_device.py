"""A whole part in a device's memory: batches are gathered there, so training needs no transfer of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ...core.errors import FarshiftError
from .batched import ColumnarPart
from .columns import FixedColumn, to_microseconds
from .order import GlobalBatches


@dataclass(frozen=True)
class DevicePart:
    """A part's columns on `device`: tensors whose first axis is the row."""

    part: ColumnarPart
    device: torch.device
    columns: dict[str, Tensor]

    @classmethod
    def load(cls, part: ColumnarPart, device: torch.device | str, columns: Sequence[str] | None) -> DevicePart:
        """Copy a part's columns to a device. Raises `FarshiftError` for texts and files."""
        tensors: dict[str, Tensor] = {}
        for name in part.resolve_columns(columns):
            column = part.column(name, "codes")
            if not isinstance(column, FixedColumn) or column.stored.dtype == object:
                raise FarshiftError(
                    f"column {name!r} of {part.split} has texts or files, which are not tensors: choose other columns"
                )
            values = to_microseconds(column.take(np.arange(len(part))))
            tensors[name] = torch.from_numpy(values).to(device)
        return cls(part, torch.device(device), tensors)

    def __len__(self) -> int:
        return len(self.part)

    def __repr__(self) -> str:
        return f"DevicePart({self.part.split}, {self.part.name}, {self.device}: {len(self):,} rows)"

    def batches(
        self,
        batch_size: int,
        seed: int | None = None,
        epoch: int = 0,
        drop_last: bool = False,
        *,
        rank: int = 0,
        world: int = 1,
        start: int = 0,
    ) -> Iterator[dict[str, Tensor]]:
        """Yield one epoch as dictionaries of tensors on the device, equal to `Part.batches` bit for bit. The arguments
        are those of `Part.batches`. The caller owns every tensor."""
        cut = GlobalBatches(len(self), batch_size, rank, world, drop_last)
        return self._batches(cut, seed, epoch, cut.steps(start))

    def _batches(self, cut: GlobalBatches, seed: int | None, epoch: int, steps: range) -> Iterator[dict[str, Tensor]]:
        for positions, bounds in cut.positions(self.part.order(seed, epoch), steps):
            rows = torch.from_numpy(positions).to(self.device)
            for start, stop in pairwise(bounds):
                yield {name: _select_rows(values, rows[start:stop]) for name, values in self.columns.items()}


def _select_rows(values: Tensor, rows: Tensor) -> Tensor:
    # PyTorch cannot index unsigned 64-bit tensors, so their bits are indexed as signed ones.
    if values.dtype == torch.uint64:
        return values.view(torch.int64).index_select(0, rows).view(torch.uint64)
    return values.index_select(0, rows)
