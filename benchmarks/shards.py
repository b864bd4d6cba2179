"""Shards: what a model answered so far, in files that are there whole or not at all.

A job is one model of a seed (one setting, or one fold of a selection rule). Its folder holds shards, each named
`<part>.<candidate's number>.<start>-<stop>.<head of its sha256>.arrow`, positions in the order of asking.
"""

from __future__ import annotations

import json
import time
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..loaders.cache import write_atomically
from .answers import Answers
from .handout import Inputs
from .model import Task
from .predictions import answers_table, merged

if TYPE_CHECKING:
    import pyarrow as pa

ADVICE = "name another --out"
FLUSH_SECONDS = 5.0
FLUSH_ROWS = 262_144
_TRAINED = "trained"
"""A file that says: this job's model was trained, so what it answered is of no use to another process."""


class Job:
    """One model of a seed: trained (or not), and asked for the parts of all its candidates."""

    def __init__(self, path: Path, seed: int, task: Task, fold: bool = False) -> None:
        self.path, self.seed, self.task, self.fold = path, seed, task, fold
        self.candidates: list[str] = []
        self._asked: list[tuple[int, Inputs]] = []

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def _card(self) -> Path:
        return self.path.with_name(f"{self.name}.json")

    def is_done(self) -> bool:
        """Whether the job has its card, and every shard that the card names is whole."""
        card = read_card(self._card)
        return card is not None and all(is_whole(self.path / name) for name in card["shards"])

    def final(self) -> str:
        """The last candidate that was asked, here or by the process that finished the job."""
        card = read_card(self._card)
        return str((card["candidates"] if card else self.candidates)[-1])

    def mark_trained(self) -> None:
        """Note that what follows comes from a model that was trained here."""
        write_atomically(self.path / _TRAINED, b"", ADVICE)

    def covered(self, number: int, inputs: Inputs) -> NDArray[np.bool_]:
        """Which rows have an answer of the candidate of this number, in the order of asking, shape (n,)."""
        covered = np.zeros(len(inputs), bool)
        for shard in self._shards(number, inputs.name):
            start, stop = map(int, shard.name.split(".")[2].split("-"))
            if not covered[start:stop].all() and is_whole(shard):
                covered[start:stop] = True
        return covered

    def _shards(self, number: int, part: str) -> list[Path]:
        return sorted(self.path.glob(f"{part}.{number}.*.arrow"))

    def asks(self, candidate: str, inputs: Inputs) -> int:
        """Note that a candidate is asked for rows; its number in this job."""
        if candidate not in self.candidates:
            self.candidates.append(candidate)
        number = self.candidates.index(candidate)
        self._asked.append((number, inputs))
        return number

    def is_covered(self) -> bool:
        """Whether all rows that were asked for have their answers, from this process or others."""
        return all(self.covered(number, inputs).all() for number, inputs in self._asked)

    def finish(self, spent: dict[str, Any], touched: list[str]) -> None:
        """Write the job's card: its candidates, shards, and what it spent."""
        shards = [path.name for number, inputs in self._asked for path in self._shards(number, inputs.name)]
        card = {
            "job": self.name,
            "fold": self.fold,
            "candidates": self.candidates,
            "shards": sorted(set(shards)),
            "spent": spent,
            "touched": touched,
        }
        write_atomically(self._card, json.dumps(card).encode(), ADVICE)


class Shard:
    """Answers on their way to the disk: written every few seconds, and when the context ends, with or without an error.

    With `in_one` nothing is written unless every row was answered."""

    def __init__(self, job: Job, candidate: str, inputs: Inputs, in_one: bool = False) -> None:
        self.inputs = inputs
        self._job, self._in_one = job, in_one
        self._number = job.candidates.index(candidate)
        self._pending: list[tuple[int, int, NDArray[np.uint64], Answers]] = []
        self._rows, self._flushed = 0, time.monotonic()

    def add(self, start: int, stop: int, row_ids: NDArray[np.uint64], answers: Answers) -> None:
        """Keep the answers to the rows at [start, stop) of the order of asking."""
        if self._pending and self._pending[-1][1] != start:
            self._flush()
        self._pending.append((start, stop, row_ids, answers))
        self._rows += stop - start
        full = self._rows >= FLUSH_ROWS or time.monotonic() - self._flushed > FLUSH_SECONDS
        if full and not self._in_one:
            self._flush()

    def __enter__(self) -> Shard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._in_one or self._rows == len(self.inputs):
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            start, stop = self._pending[0][0], self._pending[-1][1]
            ids = np.concatenate([row_ids for _, _, row_ids, _ in self._pending])
            answers = merged([answers for *_, answers in self._pending])
            content = _arrow(answers_table(ids, answers, self._job.task))
            digest = sha256(content).hexdigest()[:16]
            name = f"{self.inputs.name}.{self._number}.{start}-{stop}.{digest}.arrow"
            write_atomically(self._job.path / name, content, ADVICE)
        self._pending, self._rows, self._flushed = [], 0, time.monotonic()


def is_whole(shard: Path) -> bool:
    """Whether a shard is what its name says."""
    try:
        return sha256(shard.read_bytes()).hexdigest()[:16] == shard.name.split(".")[3]
    except (OSError, IndexError):
        return False


def read_card(path: Path) -> dict[str, Any] | None:
    """A card of this folder; None where there is none that can be read."""
    try:
        card = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return card if isinstance(card, dict) else None


def useless(shards: Path) -> list[Path]:
    """The folders of jobs that a trained model left half done."""
    return [
        marker.parent
        for marker in sorted(shards.glob(f"*/*/{_TRAINED}"))
        if not marker.parent.with_name(f"{marker.parent.name}.json").exists()
    ]


def read_shard(shard: Path) -> pa.Table:
    """The answers of a shard: row_id, prediction, status, scores."""
    import pyarrow as pa

    return pa.ipc.open_file(shard).read_all()


def _arrow(table: pa.Table) -> memoryview:
    """The table as an Arrow file: written as it lies in memory, since a model is waiting."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())
