"""A whole part in a device's memory: batches are gathered there, so training needs no transfer of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ...core.errors import FarshiftError
from ..part import Part
from .columns import FixedColumn, copy_bytes_and_offsets, to_microseconds
from .order import GlobalBatches

Texts = tuple[Tensor, Tensor]
"""The concatenated bytes of all texts (uint8), and their offsets (int64, rows + 1)."""


@dataclass(frozen=True)
class DevicePart:
    """A part's columns on `device`: tensors whose first axis is the row, or `Texts`."""

    part: Part
    device: torch.device
    columns: dict[str, Tensor | Texts]

    @classmethod
    def load(
        cls,
        part: Part,
        device: torch.device | str,
        columns: Sequence[str] | None,
        text: Literal["bytes"] | None,
    ) -> DevicePart:
        """Copy a part's columns to a device. Raises `FarshiftError` for texts and files unless `text` is "bytes"."""
        if text not in (None, "bytes"):
            raise FarshiftError(f"text on a device has to be 'bytes', not {text!r}")
        target, every = torch.device(device), np.arange(len(part))
        tensors: dict[str, Tensor | Texts] = {}
        for name in part.resolve_columns(columns):
            column = part.column(name, text or "codes")
            if isinstance(column, FixedColumn) and column.stored.dtype != object:
                tensors[name] = torch.from_numpy(to_microseconds(column.take(every))).to(target)
                continue
            if isinstance(column, FixedColumn) or text is None:
                files = [field.name for field in part.schema.fields if field.item == "bytes"]
                what = "bytes" if name in files else "text"
                raise FarshiftError(
                    f"column {name!r} of {part.split} is {what}, which is not a tensor: choose other columns, or load "
                    "its bytes and offsets with text='bytes'"
                )
            content, offsets = copy_bytes_and_offsets(column.take(every))
            tensors[name] = torch.from_numpy(content).to(target), torch.from_numpy(offsets).to(target)
        return cls(part, target, tensors)

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
        """Yield one epoch as dictionaries of tensors on the device, equal to `Part.batches` bit for bit, with texts as
        `<name>` and `<name>.offsets`. The arguments are those of `Part.batches`. The caller owns every tensor."""
        cut = GlobalBatches(len(self), batch_size, rank, world, drop_last)
        return self._batches(cut, seed, epoch, cut.steps(start))

    def _batches(self, cut: GlobalBatches, seed: int | None, epoch: int, steps: range) -> Iterator[dict[str, Tensor]]:
        for positions, bounds in cut.positions(self.part.order(seed, epoch), steps):
            device_positions = torch.from_numpy(positions).to(self.device)
            for start, stop in pairwise(bounds):
                yield self._gathered(device_positions[start:stop])

    def _gathered(self, rows: Tensor) -> dict[str, Tensor]:
        batch = {}
        for name, values in self.columns.items():
            if isinstance(values, Tensor):
                batch[name] = _select_rows(values, rows)
            else:
                batch[name], batch[f"{name}.offsets"] = _select_texts(values, rows)
        return batch


def _select_rows(values: Tensor, rows: Tensor) -> Tensor:
    # PyTorch cannot index unsigned 64-bit tensors, so their bits are indexed as signed ones.
    if values.dtype == torch.uint64:
        return values.view(torch.int64).index_select(0, rows).view(torch.uint64)
    return values.index_select(0, rows)


def _select_texts(texts: Texts, rows: Tensor) -> Texts:
    content, offsets = texts
    begins = offsets[rows]
    sizes = offsets[rows + 1] - begins
    bounds = torch.zeros(len(rows) + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(sizes, 0, out=bounds[1:])
    shifts = torch.repeat_interleave(begins - bounds[:-1], sizes)
    return content[shifts + torch.arange(len(shifts), device=rows.device)], bounds
