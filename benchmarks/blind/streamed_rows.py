"""Training rows whose images or audio are read from a stream, step by step, and not stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.isolation.label_access import allow_label_access
from ...loaders.part import to_classes
from ...loaders.stream.columns import find_streamed_inputs
from ...loaders.stream.part import StreamedPart
from ..model import Task
from .rows import SEEN_IN_TRAINING, ModelInputs
from .streamed import StreamedBenchmark
from .training_table import TrainingTable

_ROWS = 4096
"""Rows whose labels are read at once."""


def make_streamed_rows(part: StreamedPart, task: Task) -> TrainingTable:
    """Return a streamed part as training rows equal to those of the local part. Inputs are read on demand and checked
    against the manifest each time; labels are read once, here.

    Random draws in training depend on (seed, step) and the order of the rows, which is that of the local part; the
    losses are therefore those of local rows, and training resumes at any step. Raises `FarshiftError` for an input that
    is neither encoded files nor a tensor of uint8.
    """
    columns: dict[str, Any] = dict(find_streamed_inputs(part, task.inputs))
    labels = [batch[task.label] for batch in part.batches(_ROWS, columns=[task.label])]
    columns[task.label] = to_classes(np.concatenate(labels)) if labels else np.empty(0, np.int64)
    columns["weight"] = np.ones(len(part), np.int64)
    columns |= {
        name: np.array(part.known.row_metadata[name]) for name in SEEN_IN_TRAINING if name in part.known.row_metadata
    }
    return TrainingTable(columns, part.row_ids, f"{part.identity}/{part.name}")


@dataclass(frozen=True)
class StreamedInputs(ModelInputs):
    """Model inputs whose training rows are streamed; the rows to predict are in files."""

    benchmark: StreamedBenchmark

    def training(self, name: str) -> TrainingTable:
        if name != "train":
            return super().training(name)
        table = self.stored(name)
        with allow_label_access():
            columns: dict[str, Any] = dict(find_streamed_inputs(self.benchmark.streamed(name), self.task.inputs))
        extra_columns = (self.task.label, *(key for key in SEEN_IN_TRAINING if key in table.column_names))
        columns |= {key: to_classes(np.array(table[key].to_numpy(zero_copy_only=False))) for key in extra_columns}
        return TrainingTable(columns, np.array(table["row_id"].to_numpy()), self.card["streams"][name])
