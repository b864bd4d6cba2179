"""The columns of a part that training sees: inputs, observed label, weight and group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import FarshiftError
from ...loaders.batching.encoded import BadFile
from ...loaders.batching.input_format import AS_THEY_ARE, InputFormat, make_row_error


@dataclass(frozen=True)
class TrainingTable:
    """Training rows: the inputs, the observed label, `weight`, and `group` if the split has groups.

    `columns` may be memory-mapped: tensors as read-only views of the file, encoded images and audio as `EncodedFiles`.
    `numpy` and `batches` return copies: they give no access to the rest of the part, and writing into them changes no
    file.
    """

    columns: dict[str, Any]
    row_ids: NDArray[np.uint64]
    stream: str = "rows"
    forms: InputFormat = AS_THEY_ARE
    """The format in which images and audio are returned."""

    def numpy(self) -> dict[str, NDArray[Any]]:
        """Return the columns in memory by name, first axis the row; text as object arrays of `str`, files as object
        arrays of `bytes` or in the requested format."""
        return self._given(self.columns, self.row_ids)

    def __len__(self) -> int:
        return len(self.row_ids)

    def batches(
        self, batch_size: int, seed: int | None = None, epoch: int = 0, drop_last: bool = False
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield batches of `batch_size` rows, each row once: in stored order, or shuffled by (seed, epoch)."""
        if batch_size < 1:
            raise FarshiftError(f"batch_size must be at least 1, not {batch_size}")
        rows = np.arange(len(self), dtype=np.uint64)
        order = rows.astype(np.int64) if seed is None else draw_permutation(f"{self.stream}/{seed}/{epoch}", rows)
        stop = len(self) - len(self) % batch_size if drop_last else len(self)
        for start in range(0, stop, batch_size):
            here = order[start : start + batch_size]
            yield self._given({name: values[here] for name, values in self.columns.items()}, self.row_ids[here])

    def _given(self, columns: Mapping[str, Any], row_ids: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
        """Convert columns to the requested format; `BadData` names the row of a file that cannot be decoded."""
        try:
            return self.forms.given(copy_to_memory(columns))
        except BadFile as error:
            raise make_row_error(error, row_ids) from error

    def select(self, rows: NDArray[Any]) -> TrainingTable:
        """Select rows by indices or a mask."""
        return replace(
            self, columns={name: values[rows] for name, values in self.columns.items()}, row_ids=self.row_ids[rows]
        )

    def replaced(self, columns: Mapping[str, NDArray[Any]]) -> TrainingTable:
        """Return the same rows with other values in some columns."""
        return replace(self, columns=self.columns | dict(columns))

    def concatenate(self, others: Sequence[TrainingTable]) -> TrainingTable:
        """Return these rows followed by those of the others."""
        every = [self, *others]
        columns = {name: np.concatenate([np.asarray(rows.columns[name]) for rows in every]) for name in self.columns}
        return replace(self, columns=columns, row_ids=np.concatenate([rows.row_ids for rows in every]))


def copy_to_memory(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the columns as writable arrays; mapped columns are copied."""
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    return {name: values if values.flags.writeable else np.array(values) for name, values in arrays.items()}
