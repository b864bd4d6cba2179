"""Report the progress of a replica group's training: to listeners in this process, and in a file of the run folder."""

import math
import time
from collections.abc import Callable
from pathlib import Path

from ...benchmarks.runs.status import FitProgress
from ...core.progress import report_progress
from .trainer import Training

REPORT_INTERVAL, WRITE_INTERVAL = 0.5, 2.0
"""Seconds between two reports to listeners, and between two writes of the file."""


class FitProgressReporter:
    """Progress of a group's training, in steps of its replicas: a step of a stack of five counts five. Between two
    reports nothing waits for the device; the losses are read only for a report."""

    def __init__(
        self, label: str, steps: int, file: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """steps: of all replicas, on all sets of rows. file: what `farshift status` reads; None for none."""
        self.label, self.steps, self.file, self._clock = label, steps, file, clock
        self._before = 0
        """Steps of the stacks that have been trained."""
        self._first: int | None = None
        self._began = self._heard = self._written = 0.0

    def begin(self, training: Training, replicas: int) -> None:
        """The training of a stack of `replicas` begins or is resumed from a checkpoint."""
        done = self._done(training, replicas)
        if self._first is None:
            self._first, self._began = done, self._clock()
        self._report(done, None)

    def step(self, training: Training, replicas: int) -> None:
        """A stack that began with `replicas` made a step. Replicas that were dropped count as trained."""
        if self._clock() - self._heard >= REPORT_INTERVAL:
            loss = float(training.losses.mean()) if len(training.losses) else math.nan
            self._report(self._done(training, replicas), loss if math.isfinite(loss) else None)

    def trained(self, steps: int) -> None:
        """A stack or an estimator has been trained; steps: of all its replicas."""
        if self._first is None:
            self._first, self._began = 0, self._clock()
        self._before += steps
        self._report(self._before, None)

    def close(self) -> None:
        """Nothing is left to train: report all steps as done."""
        report_progress(self.label, self.steps, self.steps)
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    def _done(self, training: Training, replicas: int) -> int:
        going = len(training.stack)
        return self._before + training.total * going + training.steps * (replicas - going)

    def _report(self, done: int, loss: float | None) -> None:
        self._heard = self._clock()
        done = min(done, self.steps)
        report_progress(self.label, done, self.steps, "" if loss is None else f"loss {loss:.4g}")
        if self.file is not None and (self._heard - self._written >= WRITE_INTERVAL or done == self.steps):
            self._written = self._heard
            now = FitProgress(done, self.steps, self._first or 0, round(self._heard - self._began, 3), loss)
            now.write(self.file)
