"""Rows as a model receives them: inputs for prediction, inputs and observed labels for training."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...loaders.batching.columns import join_chunks
from ...loaders.batching.encoded_files import EncodedFiles
from ...loaders.part import to_classes
from ..definition import BenchmarkDefinition
from ..model import Task
from ..prompting.prompt import Prompt
from .training_table import TrainingTable

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "base64"
"""The key of an example's file on the card."""

SEEN_IN_TRAINING = ("weight", "group")
"""Columns of training rows in addition to inputs and label."""


@dataclass(frozen=True)
class Inputs:
    """The rows of a part for prediction: row ids and inputs. Text columns are Arrow arrays."""

    name: str
    row_ids: NDArray[np.uint64]
    columns: dict[str, Any]
    group: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.row_ids)

    def batch(self, rows: slice | NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return copies of some rows' inputs, so that a model cannot change the stored ones."""
        return {name: _copy_rows(column, rows) for name, column in self.columns.items()}

    @cached_property
    def files(self) -> dict[str, EncodedFiles]:
        """The columns of encoded files, memory-mapped."""
        import pyarrow as pa

        return {
            name: EncodedFiles(pa.chunked_array([column]))
            for name, column in self.columns.items()
            if isinstance(column, pa.Array)
            and (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type))
        }

    def select(self, rows: NDArray[np.int64]) -> Inputs:
        return replace(
            self,
            row_ids=self.row_ids[rows],
            columns=self.batch(rows),
            group=None if self.group is None else self.group[rows],
        )

    def replaced(self, columns: dict[str, NDArray[Any]], row_ids: NDArray[np.uint64]) -> Inputs:
        """Return these rows with other values and new ids."""
        return replace(self, columns=columns, row_ids=row_ids)

    def concatenate(self, others: Sequence[Inputs]) -> Inputs:
        """Return these rows followed by those of the others."""
        every = [self, *others]
        columns = {name: np.concatenate([inputs.batch(slice(None))[name] for inputs in every]) for name in self.columns}
        return Inputs(self.name, np.concatenate([inputs.row_ids for inputs in every]), columns)


def _copy_rows(column: Any, rows: slice | NDArray[np.int64]) -> NDArray[Any]:
    if isinstance(column, np.ndarray):
        return np.array(column[rows])
    if isinstance(rows, slice):
        start, stop, _ = rows.indices(len(column))
        selected = column.slice(start, stop - start)
    else:
        selected = column.take(rows)
    return selected.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ModelInputs:
    """The files of a benchmark that a model may see."""

    folder: Path
    task: Task
    card: dict[str, Any]

    def _table(self, name: str) -> pa.Table:
        import pyarrow as pa

        return pa.ipc.open_file(pa.memory_map(str(self.folder / f"{name}.arrow"))).read_all()

    def part(self, name: str) -> Inputs:
        """Return a part's row ids and inputs, memory-mapped."""
        table = self._table(name)
        columns = {key: self._column(table, key) for key in self.task.inputs}
        group = table["asked_group"].to_numpy() if "asked_group" in table.column_names else None
        return Inputs(name, table["row_id"].to_numpy(), columns, group)

    def training(self, name: str) -> TrainingTable:
        """Return a part's rows for training: tensors and encoded files are mapped, the rest is copied into memory."""
        table = self._table(name)
        columns = {key: self._trained_on(table, key) for key in (*self.task.inputs, self.task.label)}
        columns |= {key: np.array(table[key].to_numpy()) for key in SEEN_IN_TRAINING if key in table.column_names}
        return TrainingTable(columns, np.array(table["row_id"].to_numpy()), self.card["streams"][name])

    def unlabelled(self, name: str) -> dict[str, Any]:
        """Return the inputs of a part's rows, as `training` does."""
        table = self._table(name)
        return {key: self._trained_on(table, key) for key in self.task.inputs}

    def _trained_on(self, table: pa.Table, name: str) -> Any:
        import pyarrow as pa

        kind = table[name].type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return EncodedFiles(table[name])
        column = self._column(table, name)
        mapped = isinstance(column, np.ndarray) and column.ndim > 1
        return column if mapped else _copy_rows(column, slice(None))

    def _column(self, table: pa.Table, name: str) -> Any:
        import pyarrow as pa

        column = join_chunks(table[name])
        shape = self.card["shapes"].get(name)
        if shape:
            return column.flatten().to_numpy().reshape(-1, *shape)
        if pa.types.is_boolean(column.type):
            truth: NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
            return to_classes(truth) if name == self.task.label else truth
        return column.to_numpy() if pa.types.is_primitive(column.type) else column

    def has_part(self, name: str) -> bool:
        return name in self.card["streams"]

    def kind(self, name: str) -> pa.DataType:
        """Return the Arrow type of an input."""
        tables = (self._table(part) for part in self.card["streams"])
        data_type: pa.DataType = next(
            schema_table.schema.field(name).type for schema_table in tables if name in schema_table.column_names
        )
        return data_type

    def stored(self, name: str) -> pa.Table:
        """Return all columns of a part's file, memory-mapped."""
        return self._table(name)

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt with its examples; None if the benchmark has no prompt."""
        pin = BenchmarkDefinition.model_validate(self.card["definition"]).prompt
        if pin is None:
            return None
        shots = [{name: _decode_value(value) for name, value in shot.items()} for shot in self.card["shots"]]
        return Prompt(pin, self.task, tuple(shots))


def _decode_value(value: Any) -> Any:
    """Read a value of an example from the card, where files are in base64."""
    return base64.b64decode(value[FILE]) if isinstance(value, dict) else value
