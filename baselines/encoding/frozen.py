"""Features of a frozen pretrained encoder, in place of the texts, images or audio that it reads.

Linear probing: Alain and Bengio, "Understanding intermediate layers using linear classifier probes", 2016
(arXiv:1610.01644); as a baseline under shift, Kumar et al., ICLR 2022 (arXiv:2202.10054). Anything that learns from
numbers can be the probe: a scikit-learn estimator, or a network under any algorithm.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from .checkpoint import Checkpoint, ModuleCheckpoint, find_checkpoint
from .feature_store import DIGEST, FeatureStore
from .frozen_readers import make_reader
from .images import is_encoded


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


class _Encoder:
    """A model that encodes each row once, and stores its features in the cache by a digest of the row's content."""

    def __init__(self, checkpoint: Checkpoint, device: str) -> None:
        self._model = make_reader(checkpoint, device)
        self.what, self.reads = self._model.what, self._model.reads
        libraries = ["torch"] if isinstance(checkpoint, ModuleCheckpoint) else ["transformers", "torch"]
        self._decides = {
            "format": 1,
            "weights": checkpoint.digest,
            "device": device.split(":")[0],
            "versions": [version(name) for name in libraries],
        }
        self._name = checkpoint.name
        self._stores: dict[bool, FeatureStore] = {}

    def scale(self, column: NDArray[Any]) -> float:
        """The divisor of a column's values: the largest of an image's pixels; 1 for texts and files."""
        return 1.0 if column.dtype == object else float(np.abs(column).max(initial=0)) or 1.0

    def features(self, column: NDArray[Any], scale: float) -> NDArray[np.float32]:
        """Features (n, width) of n texts, images or encoded files."""
        if column.dtype == object:
            rows = (value if isinstance(value, bytes) else value.encode() for value in column)
        else:
            column = np.ascontiguousarray(column / np.float32(scale), np.float32)
            rows = (repr(column.shape[1:]).encode() + row.tobytes() for row in column)
        digests = [blake2b(row, digest_size=DIGEST).digest() for row in rows]
        return self._store(is_encoded(column)).of(digests, lambda places: self._model.read(column[places]))

    def _store(self, files: bool) -> FeatureStore:
        """The store of the features; features of files depend on the decoder too."""
        if files not in self._stores:
            decides = self._decides | {"decoder": list(self._model.decides) if files else []}
            decides |= (
                {"format": 2} if files else {}
            )  # of images in their upright orientation, and of 16 bits by their bits
            self._stores[files] = FeatureStore(self._name, decides, self._model.width)
        return self._stores[files]
