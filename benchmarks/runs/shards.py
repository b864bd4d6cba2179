"""Shards: the predictions so far, in files that are written atomically.

A job is one model of a seed (one setting, or one fold of a selection rule). Its folder has shards, each named
`<part>.<candidate's key>.<start>-<stop>.<head of its sha256>.arrow`, with positions in prediction order.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.documents import read_json
from ...core.files import write_atomically
from ..answers import Answers
from ..model import Task
from ..model_inputs.rows import ModelRows
from .predictions import add_outputs, concatenate_answers, make_answers_table

if TYPE_CHECKING:
    import pyarrow as pa

ADVICE = "choose another --out"
FLUSH_SECONDS = 5.0
FLUSH_ROWS = 262_144
_TRAINED = "trained"
"""A file that marks a job whose model was trained, so that another process cannot complete its predictions."""


def compute_candidate_key(candidate: str) -> str:
    """Return the key of a candidate in the names of its shards. It depends on the name only, so that a model made by a
    later process may list its candidates in another order."""
    return sha256(candidate.encode()).hexdigest()[:12]


class Job:
    """One model of a seed: trained (or not), with predictions of all its candidates."""

    def __init__(self, path: Path, seed: int, task: Task, fold: bool = False) -> None:
        self.path, self.seed, self.task, self.fold = path, seed, task, fold
        self.candidates: list[str] = []
        self._requests: list[tuple[str, ModelRows]] = []

    @property
    def name(self) -> str:
        return self.path.name

    def is_done(self) -> bool:
        return is_job_done(self.path)

    def answered(self) -> list[str]:
        """The candidates that predicted, in order, here or in the process that finished the job."""
        card = read_job_card(get_card_path(self.path))
        return list(card["candidates"]) if card else self.candidates

    def mark_trained(self) -> None:
        """Mark that the following predictions are from a model that was trained here."""
        write_atomically(self.path / _TRAINED, b"", ADVICE)

    def covered(self, candidate: str, inputs: ModelRows) -> NDArray[np.bool_]:
        """Return which rows have a prediction of the candidate, in prediction order, shape (n,). A damaged shard is
        removed and does not count."""
        covered = np.zeros(len(inputs), bool)
        for shard in self._shards(candidate, inputs.name):
            if is_complete(shard):
                covered[slice(*parse_row_range(shard))] = True
            else:
                shard.unlink(missing_ok=True)
        return covered

    def _shards(self, candidate: str, part: str) -> list[Path]:
        return sorted(self.path.glob(f"{part}.{compute_candidate_key(candidate)}.*.arrow"))

    def asks(self, candidate: str, inputs: ModelRows) -> None:
        """Record that a candidate must predict these rows."""
        if candidate not in self.candidates:
            self.candidates.append(candidate)
        self._requests.append((candidate, inputs))

    def is_covered(self) -> bool:
        """Whether all recorded rows have predictions, from this process or others."""
        return all(self.covered(candidate, inputs).all() for candidate, inputs in self._requests)

    def finish(self, spent: dict[str, Any], touched: list[str]) -> None:
        """Write the job's card: its candidates, shards and usage."""
        shards = [path.name for candidate, inputs in self._requests for path in self._shards(candidate, inputs.name)]
        card = {
            "job": self.name,
            "fold": self.fold,
            "candidates": self.candidates,
            "shards": sorted(set(shards)),
            "spent": spent,
            "touched": touched,
        }
        write_atomically(get_card_path(self.path), json.dumps(card).encode(), ADVICE)


class Shard:
    """Predictions to be stored: written every few seconds, and when the context ends, with or without an error.

    With `in_one` nothing is written unless every row has a prediction."""

    def __init__(self, job: Job, candidate: str, inputs: ModelRows, in_one: bool = False) -> None:
        self.inputs = inputs
        self._job, self._in_one = job, in_one
        self._candidate, self._key = candidate, compute_candidate_key(candidate)
        self._pending: list[tuple[int, int, NDArray[np.uint64], Answers]] = []
        self._rows, self._flushed = 0, time.monotonic()

    def add(self, start: int, stop: int, row_ids: NDArray[np.uint64], answers: Answers) -> None:
        """Add the predictions of the rows at [start, stop) in prediction order."""
        if self._pending and self._pending[-1][1] != start:
            self._flush()
        self._pending.append((start, stop, row_ids, answers))
        self._rows += stop - start
        full = self._rows >= FLUSH_ROWS or time.monotonic() - self._flushed > FLUSH_SECONDS
        if full and not self._in_one:
            self._flush()

    def add_outputs(self, row_ids: Sequence[int], texts: Sequence[str | None]) -> None:
        """Store the raw texts of rows beside the run's other files."""
        named: dict[str, str | int] = {"part": self.inputs.name, "seed": self._job.seed, "candidate": self._candidate}
        add_outputs(self._job.path.parents[2], named, row_ids, texts)

    def __enter__(self) -> Shard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._in_one or self._rows == len(self.inputs):
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            start, stop = self._pending[0][0], self._pending[-1][1]
            ids = np.concatenate([row_ids for _, _, row_ids, _ in self._pending])
            answers = concatenate_answers([answers for *_, answers in self._pending])
            content = _encode_arrow(make_answers_table(ids, answers, self._job.task))
            digest = sha256(content).hexdigest()[:16]
            name = f"{self.inputs.name}.{self._key}.{start}-{stop}.{digest}.arrow"
            write_atomically(self._job.path / name, content, ADVICE)
        self._pending, self._rows, self._flushed = [], 0, time.monotonic()


def is_complete(shard: Path) -> bool:
    """Whether a shard matches the digest in its name."""
    try:
        return sha256(shard.read_bytes()).hexdigest()[:16] == shard.name.split(".")[3]
    except (OSError, IndexError):
        return False


def read_job_card(path: Path) -> dict[str, Any] | None:
    """Read a card; None if it is missing or unreadable."""
    try:
        card = read_json(path)
    except (OSError, ValueError):
        return None
    return card if isinstance(card, dict) else None


def get_card_path(job: Path) -> Path:
    """Return the path of the card of the job in a folder, beside the folder."""
    return job.with_name(f"{job.name}.json")


def parse_row_range(shard: Path) -> tuple[int, int]:
    """Return the rows [start, stop) in prediction order of a shard, from its name."""
    start, stop = map(int, shard.name.split(".")[2].split("-"))
    return start, stop


def list_shards(folder: Path) -> list[Path]:
    """List the shards anywhere in a folder, sorted; fewer if another process removes the folder meanwhile."""
    shards: list[Path] = []
    for root, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]  # being removed (`discard_folder`)
        shards += [Path(root) / name for name in names if name.endswith(".arrow")]
    return sorted(shards)


def is_job_done(job: Path) -> bool:
    """Whether the job in a folder has its card, and every shard that the card names is complete."""
    card = read_job_card(get_card_path(job))
    return card is not None and all(is_complete(job / name) for name in card["shards"])


def discard_useless(shards: Path) -> None:
    """Remove incomplete or damaged jobs of trained models: repeated training may not give the same model, so their
    predictions cannot be completed."""
    for marker in sorted(shards.glob(f"*/[!.]*/{_TRAINED}")):
        job = marker.parent
        if not is_job_done(job):
            get_card_path(job).unlink(missing_ok=True)
            discard_folder(job)


def discard_folder(folder: Path) -> None:
    """Remove a folder atomically: a process that is killed meanwhile leaves no part of it visible."""
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone)


def read_shard(shard: Path) -> pa.Table:
    """Read the answers of a shard: row_id, prediction, status, scores."""
    import pyarrow as pa

    return pa.ipc.open_file(shard).read_all()


def _encode_arrow(table: pa.Table) -> memoryview:
    """Encode the table as an uncompressed Arrow file, which is fast, since a model is waiting."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())
