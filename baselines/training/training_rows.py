"""The harness's input to a replica group: its members, the rows to train on, and digests that identify sets of
rows."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...benchmarks.model import Columns, TrainingRows
from ...benchmarks.model_inputs.rows import ModelRows
from ...core.canonical import compute_identity
from ...loaders.batching.encoded import digest_contents, is_encoded


@dataclass(frozen=True)
class Member:
    """One replica: its seed, and the settings that differ from its recipe's."""

    seed: int
    settings: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The label that distinguishes it in its replica group."""
        return f"{self.seed}" + (f"/{json.dumps(dict(self.settings), sort_keys=True)}" if self.settings else "")


@dataclass(frozen=True)
class FitInput:
    """The data that the harness gives a model to train on."""

    train: TrainingRows
    val: TrainingRows | None
    ood_val: TrainingRows | None = None
    unlabelled: Columns | None = None

    def digest(self) -> str:
        """A digest of all rows that a fit reads."""
        parts = [None if part is None else _collect_columns(part) for part in (self.train, self.val, self.ood_val)]
        return compute_identity([None if part is None else digest_batch(part) for part in (*parts, self.unlabelled)])


def number_groups(group: NDArray[Any], known: NDArray[Any]) -> torch.Tensor:
    """Groups as numbers, (n,) int64: those of the training rows first, in the order of their names."""
    names = np.unique(known)
    new = np.setdiff1d(group, names)
    numbers = {name: number for number, name in enumerate((*names.tolist(), *new.tolist()))}
    return torch.tensor([numbers[name] for name in group.tolist()], dtype=torch.int64)


def extract_columns(given: TrainingRows) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64], NDArray[Any] | None]:
    """The columns of training rows, their weights, and their groups if they have any."""
    rows = _collect_columns(given)
    weight = np.asarray(rows.pop("weight", np.ones(len(given))), np.float64)
    return rows, weight, rows.pop("group", None)


def digest_batch(batch: Columns) -> str:
    """A digest of a batch's content."""
    hasher = blake2b(digest_size=16)
    for name in sorted(batch):
        column: Any = batch[name]
        key = getattr(column, "key", "")  # of unread files, by their contents; of streamed ones, by their manifest
        column = column if key else np.asarray(column)
        if key or is_encoded(column):
            hasher.update(f"{name}/{key or digest_contents(iter(column))}/".encode())
            continue
        hasher.update(f"{name}/{column.dtype}/{column.shape}/".encode())
        if column.dtype == object:
            hasher.update(json.dumps(column.tolist()).encode())
        else:
            hasher.update(np.ascontiguousarray(column).data)
    return hasher.hexdigest()


def _collect_columns(given: TrainingRows) -> dict[str, Any]:
    """The columns of training rows; columns in a file are not read into memory."""
    return dict(given.columns if isinstance(given, ModelRows) else given.numpy())
