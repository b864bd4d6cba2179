"""Features of a frozen pretrained encoder, in place of the texts, images or audio that it reads.

Linear probing: Alain and Bengio, "Understanding intermediate layers using linear classifier probes", 2016
(arXiv:1610.01644); as a baseline under shift, Kumar et al., ICLR 2022 (arXiv:2202.10054). Anything that learns from
numbers can be the probe: a scikit-learn estimator, or a network under any algorithm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.model import Columns, Task
from ...core.canonical import compute_identity
from ...core.errors import ModelError
from ...core.files import get_cache_root
from ...core.progress import report_progress
from ...loaders.cache.store import load_or_build_table
from .checkpoint import Checkpoint, ModuleCheckpoint, find_checkpoint
from .frozen_readers import make_reader
from .images import is_encoded

Reader = Callable[[Columns], Columns]
"""Reads a batch's columns before they are encoded: as they are, or with features in place of some."""


def read_unchanged(batch: Columns) -> Columns:
    return batch


def digest_encoder(spec: str) -> str:
    """A digest of an encoder's weights: of the Hub's commit, of a folder's files, or of a module's tensors and
    preprocessing. Downloads missing files; raises the errors of `FrozenColumns`."""
    return find_checkpoint(spec).digest


class FrozenColumns:
    """The columns of a classification or regression task, with features in place of its texts, images or audio.

    spec: see `find_checkpoint`. The features are the mean of the last hidden states: over a text's tokens (at most its
    window), over an image's positions, or over an audio clip's frames; or what a module returns.
    Encoded images and audio are read by the model's own processor; pixels of images that are arrays are divided by the
    largest among training rows, as in `encoding.RowEncoding`.

    Raises the errors of `find_checkpoint`, and `ModelError` for a task without an input that the model reads."""

    def __init__(self, spec: str, task: Task, train: Columns, device: str = "cpu") -> None:
        if task.type not in ("classification", "regression"):
            raise ModelError(
                f"encoder {spec}: a probe on its features predicts a class or a number, and this is a {task.type} task"
            )
        self._encoder = _load_encoder(find_checkpoint(spec), device)
        self._scales: dict[str, float] = {}
        for name in task.inputs:
            if self._encoder.reads(train[name]):
                self._scales[name] = self._encoder.scale(train[name])
            elif train[name].dtype == object:
                given = "encoded files" if is_encoded(train[name]) else "text"
                raise ModelError(f"encoder {spec} reads {self._encoder.what}, and the input {name!r} is {given}")
        if not self._scales:
            raise ModelError(
                f"encoder {spec} reads {self._encoder.what}, and this task has none: {', '.join(task.inputs)}"
            )

    def columns(self, given: Columns) -> dict[str, NDArray[Any]]:
        """The columns, with features (n, width) float32 in place of each that the encoder reads."""
        return dict(given) | {name: self._encoder.features(given[name], scale) for name, scale in self._scales.items()}


@lru_cache(maxsize=1)
def _load_encoder(checkpoint: Checkpoint, device: str) -> _Encoder:
    """The encoder of pretrained weights, loaded once for all replicas of a process."""
    return _Encoder(checkpoint, device)


ROWS = 4096
"""Rows whose features are one file of the cache: the most that are lost when a process is killed."""

Features = NDArray[np.float32]


class _Encoder:
    """A model whose features of some rows are a file of the cache, named by a digest of the rows' content: computed
    once for all processes. The files of one encoder with one configuration are a folder of the kind `features`."""

    def __init__(self, checkpoint: Checkpoint, device: str) -> None:
        self._model = make_reader(checkpoint, device)
        self.what, self.reads = self._model.what, self._model.reads
        libraries = ["torch"] if isinstance(checkpoint, ModuleCheckpoint) else ["transformers", "torch"]
        self._decides = {
            "format": 3,
            "weights": checkpoint.digest,
            "device": device.split(":")[0],
            "versions": [version(name) for name in libraries],
        }
        self._name = checkpoint.name

    def scale(self, column: NDArray[Any]) -> float:
        """The divisor of a column's values: the largest of an image's pixels; 1 for texts and files."""
        return 1.0 if column.dtype == object else float(np.abs(column).max(initial=0)) or 1.0

    def features(self, column: NDArray[Any], scale: float) -> Features:
        """Features (n, width) of n texts, images or encoded files."""
        pieces = [np.zeros((0, self._model.width), np.float32)]
        for start in range(0, len(column), ROWS):
            some = column[start : start + ROWS]
            if some.dtype != object:
                some = np.ascontiguousarray(some / np.float32(scale), np.float32)
            pieces.append(self._load(some))
            if len(column) > ROWS:
                report_progress(f"encoding by {self._name}", start + len(some), len(column))
        return np.concatenate(pieces)

    def _load(self, rows: NDArray[Any]) -> Features:
        """The features of some rows, from the cache if they are there."""
        import pyarrow as pa

        def build() -> pa.Table:
            features = pa.array(np.ascontiguousarray(self._model.read(rows), np.float32).ravel())
            return pa.table({"features": pa.FixedSizeListArray.from_arrays(features, self._model.width)})

        hasher = blake2b(digest_size=16)
        for row in rows:
            content = row if isinstance(row, bytes) else row.encode() if isinstance(row, str) else row.tobytes()
            hasher.update(b"%d %r/" % (len(content), getattr(row, "shape", ())) + content)
        # The features of files depend on their decoder too.
        decides = self._decides | {"decoder": list(self._model.decides) if is_encoded(rows) else []}
        plain = re.sub(r"[^A-Za-z0-9_.-]", "-", self._name).strip("-.") or "encoder"
        folder = get_cache_root() / "features" / f"{plain}-{compute_identity(decides)[:16]}"
        table = load_or_build_table(folder / f"{hasher.hexdigest()}.arrow", build)
        features: Features = table["features"].combine_chunks().flatten().to_numpy()
        return features.reshape(-1, self._model.width)
