"""Prediction: batch by batch, within a time limit, with the predictions stored in shards meanwhile."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import ModelError
from ...core.progress import log_message, report_progress
from ...core.text import format_count
from ...core.world import SINGLE_PROCESS, World
from ...loaders.batching.encoded import BadFile
from ...loaders.batching.input_format import InputFormat, find_readable_rows
from ..answers import Answers
from ..benchmark import Benchmark
from ..definition import Adaptation
from ..model import Columns, Task
from ..model_inputs.rows import ModelRows
from ..parsing import BatchLocation, make_empty_answers, read_answer, wrap_user_errors
from ..runs.predictions import OUTPUTS
from ..runs.run_folder import Job, Shard

BATCH = 512
TIME_LIMIT = 600.0
"""Rows per batch, and seconds allowed for one, by default."""

SAMPLE = 32
"""Rows of each part that a model that is declared deterministic predicts twice."""

_PROGRESS_SECONDS = 0.1
"""Seconds between two reports of progress."""


@dataclass(frozen=True)
class Step:
    """One batch: its number, its position in prediction order, its rows, and whether the model is reset before it."""

    number: int
    start: int
    stop: int
    rows: slice | NDArray[np.int64]
    reset: bool = False


@dataclass(frozen=True)
class Predictor:
    """How the models of a run on a benchmark predict. seconds: allowed for one batch, 0 for no limit; on_hang: called
    if native code does not return; world: whose processes share the rows."""

    benchmark: Benchmark
    batch_size: int = BATCH
    seconds: float = TIME_LIMIT
    on_hang: Callable[[], None] | None = None
    world: World = SINGLE_PROCESS

    @property
    def task(self) -> Task:
        return self.benchmark.task

    def predict_all(self, model: Any, candidate: str, inputs: ModelRows, job: Job, label: str) -> None:
        """Predict the rows of `inputs` that are this process's share and have no prediction in `job` yet, and store the
        predictions in its shards. Predictions made before an error are stored."""
        adaptation = self.benchmark.definition.protocol.touch.adaptation
        job.asks(candidate, inputs)
        covered = job.covered(candidate, inputs)
        if adaptation is None or getattr(model, "reset", None) is None:
            steps = self._iterate_missing_batches(covered)
            self._walk(model, steps, Shard(job, candidate, inputs), label, int(covered.sum()))
        elif self.world.rank == 0 and not covered.all():
            # An adaptive model depends on the rows that it saw before: one process, from the first row on.
            steps = _iterate_adaptation_steps(inputs, adaptation)
            self._walk(model, steps, Shard(job, candidate, inputs, in_one=True), label, 0)

    def predict_sample(self, model: Any, inputs: ModelRows) -> Answers:
        """Predict a few rows of `inputs`, the same each time; the predictions are not stored."""
        rows = draw_permutation(f"sample/{inputs.name}", inputs.row_ids)[:SAMPLE]
        location = BatchLocation(inputs.name, 0, inputs.row_ids[rows])
        return self._answers(model, inputs, Step(0, 0, len(rows), rows), location)

    def _iterate_missing_batches(self, covered: NDArray[np.bool_]) -> Iterator[Step]:
        """Yield the batches of this process's share that are not stored yet; their limits do not depend on the
        share."""
        for number in self.world.share(-(-len(covered) // self.batch_size)):
            start = number * self.batch_size
            stop = min(start + self.batch_size, len(covered))
            if not covered[start]:
                yield Step(number, start, stop, slice(start, stop))

    def _walk(self, model: Any, steps: Iterator[Step], shard: Shard, label: str, done: int) -> None:
        inputs, reported = shard.inputs, 0.0
        with shard:
            for step in steps:
                location = BatchLocation(inputs.name, step.number, inputs.row_ids[step.rows])
                if step.reset:
                    with wrap_user_errors(f"reset before {location}"):
                        model.reset()
                shard.add(step.start, step.stop, location.rows, self._answers(model, inputs, step, location))
                outputs = getattr(model, OUTPUTS, None)
                if outputs is not None and len(outputs) == len(location.rows):  # not of a batch with unreadable files
                    shard.add_outputs(location.rows.tolist(), outputs)
                done += step.stop - step.start
                if time.monotonic() - reported > _PROGRESS_SECONDS or done == len(inputs):
                    report_progress(label, done, len(inputs))
                    reported = time.monotonic()

    def _answers(self, model: Any, inputs: ModelRows, step: Step, location: BatchLocation) -> Answers:
        """Return predictions for a batch. A row whose image or audio cannot be decoded is marked as lost, and the
        others are predicted without it."""
        batch = inputs.batch(step.rows)
        try:
            return self._predict_batch(model, batch, location)
        except BadFile as error:
            decodable = find_readable_rows(batch)
            if decodable.all():
                raise
            lost = format_count(int((~decodable).sum()), "file")
            log_message(f"{location.part}: {lost} of a batch cannot be decoded and counts as wrong: {error}")
        remaining = replace(location, rows=location.rows[decodable])
        answers = (
            self._predict_batch(model, {name: values[decodable] for name, values in batch.items()}, remaining)
            if decodable.any()
            else make_empty_answers(self.task)
        )
        return answers.scatter(decodable)

    def _predict_batch(self, model: Any, batch: Columns, location: BatchLocation) -> Answers:
        given = InputFormat.of(model).given(batch)
        with wrap_user_errors(lambda: f"predict on {location}"):
            try:
                with limit_time(self.seconds, self.on_hang):
                    answer = model.predict(given)
            except PredictTimeout:
                raise ModelError(
                    f"predict took more than {self.seconds:g} s on {location}: allow more time (--time-limit), "
                    "or use smaller batches (--batch-size)"
                ) from None
        return read_answer(answer, location, self.task)


def _iterate_adaptation_steps(inputs: ModelRows, adaptation: Adaptation) -> Iterator[Step]:
    """Yield batches in the order and with the resets of a protocol that permits adaptation."""
    count = len(inputs)
    order: NDArray[np.int64] = np.arange(count)
    edges = {0}
    if adaptation.order == "shuffled":
        order = draw_permutation(f"adaptation/{inputs.name}", inputs.row_ids)
    elif adaptation.order == "grouped":
        groups = np.zeros(count, np.int64) if inputs.group is None else inputs.group
        order = np.argsort(groups, kind="stable")
        edges |= set((np.flatnonzero(np.diff(groups[order])) + 1).tolist())
    number = 0
    for low, high in itertools.pairwise([*sorted(edges), count]):
        for start in range(low, high, adaptation.batch_size):
            stop = min(start + adaptation.batch_size, high)
            first = start == low and adaptation.reset in ("part", "group")
            yield Step(number, start, stop, order[start:stop], first or adaptation.reset == "batch")
            number += 1


GRACE = 5.0
"""Additional seconds for native code, which no exception can interrupt, before the process is ended."""


class PredictTimeout(BaseException):
    """Raised inside the model's code. Not an `Exception`, so that the model's own `except Exception` does not catch
    it."""


@contextmanager
def limit_time(seconds: float, on_hang: Callable[[], None] | None = None) -> Iterator[None]:
    """Raise `PredictTimeout` after `seconds` in Python code of the main thread within the context; 0 means no limit.

    Code that does not return to Python (a native loop, a lock) cannot be interrupted; `on_hang`, if set, is called from
    another thread `GRACE` seconds later and should end the process. Outside the main thread, and on systems without
    interval timers, only `on_hang` applies.
    """
    watchdog = threading.Timer(seconds + GRACE, on_hang) if seconds and on_hang is not None else None
    alarms = seconds and hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if watchdog is not None:
        watchdog.daemon = True
        watchdog.start()
    before = signal.signal(signal.SIGALRM, _raise_timeout) if alarms else None
    try:
        if alarms:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        if alarms:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        if watchdog is not None:
            watchdog.cancel()


def _raise_timeout(number: int, frame: FrameType | None) -> None:
    raise PredictTimeout
