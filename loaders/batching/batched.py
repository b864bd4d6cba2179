"""The protocol of a part, for what a part uses itself: PyTorch's streams and exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ...splits.schema import Schema
from .columns import Column, Text
from .order import Order

if TYPE_CHECKING:
    import pyarrow as pa


class BatchedPart(Protocol):
    """The rows of a part, local or streamed. `Part` documents the members."""

    @property
    def split(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def label(self) -> str: ...

    @property
    def label_names(self) -> tuple[str, ...]: ...

    @property
    def source(self) -> pa.Table: ...

    @property
    def row_ids(self) -> NDArray[np.uint64]: ...

    @property
    def row_metadata(self) -> dict[str, NDArray[Any]]: ...

    @property
    def override(self) -> np.ma.MaskedArray[Any, Any] | None: ...

    @property
    def corrupted(self) -> NDArray[np.bool_]: ...

    def __len__(self) -> int: ...

    def column(self, name: str, text: Text = "str") -> Column: ...

    def order(self, seed: int | None, epoch: int) -> Order: ...

    def resolve_columns(self, columns: Sequence[str] | None) -> tuple[str, ...]: ...

    def batches(self, batch_size: int, *args: Any, **options: Any) -> Iterator[dict[str, NDArray[Any]]]: ...

    def select(self, positions: NDArray[Any]) -> Self: ...

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table: ...

    def true_labels(self) -> NDArray[Any]: ...

    def observed_labels(self) -> NDArray[Any]: ...
