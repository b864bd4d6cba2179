"""What a model receives of a benchmark: the inputs of every part, and the observed labels of those that it trains on.

`ModelInputs` are views of the split's memory-mapped columns, the same that `farshift.load` gives. They have no label
that a model is scored by, so no object that a model can reach has one. Whoever reads the cache's files without the
library is not kept from the labels of public data: see docs/security.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from ...core.label_access import allow_label_access
from ...loaders.batching.columns import TextColumn
from ...loaders.batching.encoded import EncodedFiles
from ...loaders.batching.input_format import AS_THEY_ARE, InputFormat
from ...loaders.batching.order import make_order
from ...loaders.batching.pixels import ArrayPixels
from ...loaders.part import Part
from ...splits.schema import Schema
from ..definition import PromptPin
from ..model import Task
from ..prompting.prompt import Prompt, draw_shots

SEEN_IN_TRAINING = ("weight", "group")
"""Columns of training rows in addition to inputs and label."""


@dataclass(frozen=True)
class ModelRows:
    """Rows of a part: inputs, and for training also the observed label, `weight`, and `group` if the split has groups.

    columns: by name, first axis the row. Arrays may be read-only views of a mapped file; encoded images and audio
      (`EncodedFiles`), tensors of pixels (`ArrayPixels`) and texts that are only predicted (`TextColumn`) stay there
      until they are read. `batch` and `batches` return copies, `numpy` what is in memory, and copies of the rest.
    name, identity: of the part and its manifest; with a seed and an epoch they determine the order of `batches`.
    forms: the format in which images and audio are returned.
    group: numbers 0, 1 .. of the rows' groups, for adaptation in the order of groups.
    """

    columns: dict[str, Any]
    row_ids: NDArray[np.uint64]
    name: str = "rows"
    identity: str = ""
    forms: InputFormat = AS_THEY_ARE
    group: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.row_ids)

    def numpy(self) -> dict[str, NDArray[Any]]:
        """Return the columns in memory by name, first axis the row; text as object arrays of `str`, files as object
        arrays of `bytes` or in the requested format."""
        return self.forms.given({name: _load_column(column) for name, column in self.columns.items()}, self.row_ids)

    def batch(self, rows: slice | NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return copies of some rows' columns, files encoded, so that a model cannot change the stored ones."""
        return {name: copy_rows(column, rows) for name, column in self.columns.items()}

    def batches(
        self, batch_size: int, seed: int | None = None, epoch: int = 0, drop_last: bool = False
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield batches of `batch_size` rows, each row once: in stored order, or shuffled as `Part.batches` shuffles
        the same part with this seed and epoch."""
        if batch_size < 1:
            raise FarshiftError(f"batch_size must be at least 1, not {batch_size}")
        order = make_order(self.identity, self.name, seed, epoch, self.row_ids)
        stop = len(self) - len(self) % batch_size if drop_last else len(self)
        for start in range(0, stop, batch_size):
            rows = order.at(np.arange(start, min(start + batch_size, stop)))
            yield self.forms.given(self.batch(rows), self.row_ids[rows])

    def select(self, rows: NDArray[Any]) -> ModelRows:
        """Select rows by indices or a mask."""
        return replace(
            self,
            columns={name: column[rows] for name, column in self.columns.items()},
            row_ids=self.row_ids[rows],
            group=None if self.group is None else self.group[rows],
        )

    def replaced(self, columns: Mapping[str, NDArray[Any]], row_ids: NDArray[np.uint64] | None = None) -> ModelRows:
        """Return the same rows with other values in some columns, and with new ids if given."""
        return replace(self, columns=self.columns | dict(columns), row_ids=self.row_ids if row_ids is None else row_ids)

    def concatenate(self, others: Sequence[ModelRows]) -> ModelRows:
        """Return these rows followed by those of the others, in memory."""
        every = [self, *others]
        batches = [rows.batch(slice(None)) for rows in every]
        columns = {name: np.concatenate([batch[name] for batch in batches]) for name in self.columns}
        return replace(self, columns=columns, row_ids=np.concatenate([rows.row_ids for rows in every]), group=None)


def copy_rows(column: Any, rows: slice | NDArray[Any]) -> NDArray[Any]:
    """Return a copy of some rows of one of the columns of `ModelRows`."""
    selected = column[rows]
    is_view = isinstance(selected, np.ndarray) and isinstance(rows, slice)
    return np.array(selected) if is_view else np.asarray(selected)


def _load_column(column: Any) -> NDArray[Any]:
    """A column in memory that may be written into; copied if it is not."""
    is_loaded = isinstance(column, np.ndarray) and column.flags.writeable
    return column if is_loaded else copy_rows(column, slice(None))


@dataclass(frozen=True)
class ModelInputs:
    """The rows of a benchmark as a model may see them; `load_model_inputs` opens them.

    parts: by name, with inputs and row ids only. observed: of parts that are trained on, the observed label and what
    `SEEN_IN_TRAINING` names. groups: numbers of the rows' groups, if the protocol resets an adaptive model by group.
    """

    benchmark: str
    task: Task
    schema: Schema
    parts: Mapping[str, Part]
    observed: Mapping[str, dict[str, NDArray[Any]]]
    groups: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    prompt_pin: PromptPin | None = None
    open_stream: Callable[[], Mapping[str, Any]] | None = None
    """Opens the inputs of training rows that are streamed."""

    def has_part(self, name: str) -> bool:
        return name in self.parts

    def count_rows(self, name: str) -> int:
        return len(self.parts[name])

    def part(self, name: str) -> ModelRows:
        """Return a part's inputs, as they are predicted."""
        part = self.parts[name]
        columns = {
            column: _open_column(part, column) for column in self.task.inputs if column in part.source.column_names
        }
        return ModelRows(columns, part.row_ids, name, part.identity, group=self.groups.get(name))

    def training(self, name: str) -> ModelRows:
        """Return a part's inputs, observed labels, weights and groups. Texts and numbers are in memory."""
        rows = self.part(name)
        columns = _load_texts(rows.columns)
        if name == "train" and self.open_stream is not None:
            with allow_label_access():
                columns |= self.open_stream()
        # Copies: what one training writes into them must not reach the next.
        return replace(rows, columns=columns | {key: np.array(column) for key, column in self.observed[name].items()})

    def unlabelled(self, name: str) -> dict[str, Any]:
        """Return the inputs of a part's rows, as `training` does."""
        return _load_texts(self.part(name).columns)

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt with its examples; None if the benchmark has no prompt."""
        pin = self.prompt_pin
        if pin is None or self.open_stream is not None:
            return None
        rows = self.part("train")
        columns = {name: _LazyRows(column) for name, column in rows.columns.items()}
        columns[self.task.label] = _LazyRows(self.observed["train"][self.task.label])
        return Prompt(pin, self.task, draw_shots(pin, self.benchmark, columns, rows.row_ids, self.task))


@dataclass(frozen=True)
class _LazyRows:
    """A column of which single rows are read."""

    column: Any

    def __getitem__(self, row: int) -> Any:
        value = copy_rows(self.column, np.array([row]))[0]
        return value.tolist() if hasattr(value, "tolist") else value


def _load_texts(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(column) if isinstance(column, TextColumn) else column for name, column in columns.items()}


def _open_column(part: Part, name: str) -> Any:
    """Open an input. Files, texts and scattered pixels stay in the mapped file; scattered numbers are read."""
    pin = part.schema[name]
    if pin.item == "bytes":
        return EncodedFiles(part.source[name], part.source_indices)
    column = part.column(name)
    if isinstance(column, TextColumn):
        return column
    if pin.item == "uint8" and len(pin.shape) > 1 and column.places is not None:
        return ArrayPixels(column.stored, column.places)
    return column.view()
