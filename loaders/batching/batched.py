"""Protocols of a part that gives batches, local or streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...splits.schema import Schema
from .columns import Column, Text
from .order import Order


class BatchedPart(Protocol):
    """The rows of a part, in batches. `Part` and `StreamedPart` document the members."""

    @property
    def split(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def row_ids(self) -> NDArray[np.uint64]: ...

    def __len__(self) -> int: ...

    def resolve_columns(self, columns: Sequence[str] | None) -> tuple[str, ...]: ...

    def batches(
        self,
        batch_size: int,
        seed: int | None = None,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        *,
        rank: int = 0,
        world: int = 1,
        worker: int = 0,
        workers: int = 1,
        start: int = 0,
        text: Text = "str",
    ) -> Iterator[dict[str, NDArray[Any]]]: ...


class ColumnarPart(BatchedPart, Protocol):
    """A part whose columns are read by position."""

    def column(self, name: str, text: Text = "str") -> Column: ...

    def order(self, seed: int | None, epoch: int) -> Order: ...
