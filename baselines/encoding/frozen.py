"""Features of a frozen pretrained encoder, in place of the texts, images or audio that it reads.

Linear probing: Alain and Bengio, "Understanding intermediate layers using linear classifier probes", 2016
(arXiv:1610.01644); as a baseline under shift, Kumar et al., ICLR 2022 (arXiv:2202.10054). Anything that learns from
numbers can be the probe: a scikit-learn estimator, or a network under any algorithm.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b, sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.model import Columns, Task
from ...core.canonical import compute_identity
from ...core.errors import ModelError
from ...core.files import get_cache_root, hold_lock, translate_os_errors
from ...core.progress import report_progress
from ...loaders.batching.encoded import is_encoded
from ...loaders.cache.entries import keep_within_limit
from ...loaders.cache.store import is_intact, map_table, move_into_cache, write_arrow
from .checkpoint import Checkpoint, ModuleCheckpoint, find_checkpoint
from .frozen_readers import Advance, make_reader

Reader = Callable[[Columns], Columns]
"""Reads a batch's columns before they are encoded: as they are, or with features in place of some."""


def read_unchanged(batch: Columns) -> Columns:
    return batch


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
        return self._store(is_encoded(column)).of(
            digests, lambda places, advance: self._model.read(column[places], advance)
        )

    def _store(self, files: bool) -> FeatureStore:
        """The store of the features; features of files depend on the decoder too."""
        if files not in self._stores:
            decides = self._decides | {"decoder": list(self._model.decides) if files else []}
            decides |= (
                {"format": 2} if files else {}
            )  # of images in their upright orientation, and of 16 bits by their bits
            self._stores[files] = FeatureStore(self._name, decides, self._model.width)
        return self._stores[files]


DIGEST = 16
"""Bytes of a row's digest."""

ROWS = 4096
"""Rows that are encoded between two writes: the most that are lost when a process is killed."""

Features = NDArray[np.float32]

Read = Callable[[list[int], Advance], Features]


class FeatureStore:
    """The features of one encoder with one configuration on disk, each row's by a digest of its content: computed once
    for all processes.

    A store is a folder of the cache, of the kind `features`: memory-mapped tables of digests and features, each written
    whole, flushed and renamed. One process at a time adds to a store; those that wait find what it added. Larger tables
    absorb smaller ones, so that a row is rewritten a logarithmic number of times and few tables are open."""

    def __init__(self, name: str, decides: Any, width: int) -> None:
        """name: a readable name. decides: everything besides the rows that the features depend on, as canonical JSON.
        width: the number of features of a row."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "-", name).strip("-.") or "encoder"
        self.name, self.width = name, width
        self._own = f"{plain}-{compute_identity(decides)[:16]}"
        self._tables: dict[Path, tuple[NDArray[np.void], Features]] = {}
        self._at: dict[bytes, tuple[Path, int]] = {}

    @property
    def folder(self) -> Path:
        return get_cache_root() / "features" / self._own

    def of(self, digests: Sequence[bytes], read: Read) -> Features:
        """The features (n, width) of rows with these digests. `read` computes those of rows given by index, (some,
        width), and calls its second argument with how many are done; it is asked once for each digest that is not on
        disk."""
        first: dict[bytes, int] = {}
        for index, digest in enumerate(digests):
            first.setdefault(digest, index)
        if not first.keys() <= self._at.keys():
            self._open()
        if not first.keys() <= self._at.keys():
            with hold_lock(self.folder, f"features of {self.name}"):
                self._open(mend=True)
                self._add({digest: index for digest, index in first.items() if digest not in self._at}, read)
            keep_within_limit(written=True)
        return self._gather(digests)

    def _gather(self, digests: Sequence[bytes]) -> Features:
        features = np.empty((len(digests), self.width), np.float32)
        from_table: dict[Path, tuple[list[int], list[int]]] = {}
        for index, digest in enumerate(digests):
            path, row = self._at[digest]
            here, there = from_table.setdefault(path, ([], []))
            here.append(index)
            there.append(row)
        for path, (places, rows) in from_table.items():
            features[places] = self._tables[path][1][rows]
        return features

    def _open(self, mend: bool = False) -> None:
        """Open new tables. A mapped table stays readable after its file is removed. mend: remove tables that are
        truncated or changed; requires the lock."""
        there = sorted(self.folder.glob("*.arrow"))
        for path in there:
            if path in self._tables:
                continue
            if is_intact(path):
                self._take(path)
            elif mend:
                _remove_file(path)

    def _take(self, path: Path) -> None:
        try:
            table = map_table(path).combine_chunks()
        except FileNotFoundError:  # absorbed by a larger one since it was listed
            return
        rows = table["digest"].chunk(0)
        digests = np.frombuffer(rows.buffers()[1], f"V{DIGEST}", count=len(rows), offset=rows.offset * DIGEST)
        features = table["features"].chunk(0).flatten().to_numpy().reshape(-1, self.width)
        self._tables[path] = digests, features
        self._at |= {digest: (path, row) for row, digest in enumerate(digests.tolist())}
        left = {path for path, _ in self._at.values()}
        self._tables = {path: table for path, table in self._tables.items() if path in left}

    def _add(self, missing: dict[bytes, int], read: Read) -> None:
        digests = list(missing)
        for start in range(0, len(digests), ROWS):
            some = digests[start : start + ROWS]

            def advance(done: int, before: int = start) -> None:
                report_progress(f"encoding by {self.name}", before + done, len(digests))

            advance(0)
            fresh = read([missing[digest] for digest in some], advance)
            self._write(np.frombuffer(b"".join(some), f"V{DIGEST}"), fresh)

    def _write(self, digests: NDArray[np.void], features: Features) -> None:
        """Write a table of these rows and those of all tables at most twice as large, and remove these tables."""
        import pyarrow as pa

        absorbed = []
        for path in sorted(self._tables, key=lambda path: len(self._tables[path][0])):
            if len(self._tables[path][0]) > 2 * len(digests):
                break
            absorbed.append(path)
            digests = np.concatenate([self._tables[path][0], digests])
            features = np.concatenate([self._tables[path][1], features])
        digest_bytes = digests.tobytes()
        table = pa.table(
            {
                "digest": pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(DIGEST), len(digests), [None, pa.py_buffer(digest_bytes)]
                ),
                "features": pa.FixedSizeListArray.from_arrays(
                    pa.array(np.ascontiguousarray(features, np.float32).ravel()), self.width
                ),
            }
        )
        path = self.folder / f"{sha256(digest_bytes).hexdigest()[:16]}.arrow"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        with translate_os_errors(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            for leftover in self.folder.glob(".*.tmp"):  # of a killed process, since this one has the lock
                leftover.unlink(missing_ok=True)
            try:
                write_arrow(table, temporary)
                move_into_cache(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
            self._tables.pop(path, None)
            self._take(path)
            for old in absorbed:
                if old != path:
                    _remove_file(old)


def _remove_file(path: Path) -> None:
    path.with_name(f"{path.name}.ok").unlink(missing_ok=True)
    path.unlink(missing_ok=True)
