"""The progress of runs, read from their folders without affecting them.

training/steps-0.json      the training progress of the replica group whose first seed is 0, while a run is unfinished
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ...core.canonical import to_canonical_json
from ...core.clock import format_duration
from ...core.documents import read_json
from ...core.errors import BadRun, FarshiftError
from ...core.files import write_atomically
from .run import read_card
from .run_folder import is_locked, list_shards, parse_row_range

TRAINING = "training"
"""The folder of checkpoints and of these files, in an unfinished run's folder."""


@dataclass(frozen=True)
class FitProgress:
    """The training progress of one process. done: optimiser steps of all its replicas together (for an estimator,
    replicas), out of `steps`; `first` of them were done before it started. seconds: wall-clock time since then. loss:
    the mean over the replicas in training; None before the first one is known."""

    done: int
    steps: int
    first: int
    seconds: float
    loss: float | None = None

    @property
    def remaining_seconds(self) -> float | None:
        """Estimated remaining seconds at the current pace; None if unknown, or if all is done."""
        steps_taken = self.done - self.first
        return (
            self.seconds / steps_taken * (self.steps - self.done)
            if steps_taken > 0 and self.done < self.steps
            else None
        )

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, to_canonical_json(asdict(self)))


def get_fit_file(run: Path, seeds: Sequence[int]) -> Path:
    """Return the progress file of the process that trains these seeds."""
    return run / TRAINING / f"steps-{seeds[0]}.json"


def list_fit_files(run: Path) -> list[Path]:
    return sorted((run / TRAINING).glob("steps-*.json"))


def read_fit_progress(path: Path) -> FitProgress | None:
    """Read a progress file; None if it no longer exists."""
    try:
        return FitProgress(**read_json(path, dict, str(path)))
    except FileNotFoundError:
        return None


@dataclass(frozen=True)
class Status:
    """The status of one run folder. `stopped`: unfinished, and no process works on it; repeat the command to resume.

    `steps` counts the training steps of a baseline's replicas, out of `of_steps` (0: no training, or not reported).
    `answers` counts stored predictions; `rate` is predictions per second since the first one, `left` the estimated
    remaining seconds at the current pace, of training while it lasts (None: unknown)."""

    run: str
    benchmark: str
    model: str
    state: Literal["running", "stopped", "finished"]
    seeds: int
    of_seeds: int
    steps: int
    of_steps: int
    answers: int
    rate: float | None
    left: float | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def cells(self) -> list[str]:
        """Return the cells of a printed table."""
        rate = "" if self.rate is None else f"{self.rate:,.0f}"
        left = "" if self.left is None or self.state == "finished" else format_duration(self.left)
        seeds = f"{self.seeds} of {self.of_seeds}"
        trained = f"{self.steps / self.of_steps:.0%}" if self.of_steps else ""
        return [self.run, self.benchmark, self.model, self.state, seeds, trained, f"{self.answers:,}", rate, left]


def list_statuses(folders: Sequence[Path]) -> list[Status]:
    """List the status of every run in these folders, by path. Raises `FarshiftError` if there is none, `BadRun` if one
    cannot be read."""
    paths = set()
    for folder in folders:
        if not folder.is_dir():
            raise FarshiftError(f"{folder} is not a folder")
        # os.walk skips folders that another process removes meanwhile.
        paths |= {Path(root) for root, _, names in os.walk(folder) if {"run.toml", "plan.json"} & set(names)}
    if not paths:
        raise FarshiftError(f"no run in {', '.join(map(str, folders))}: give run folders, or folders with runs")
    return [read_status(path) for path in sorted(paths)]


def read_status(path: Path) -> Status:
    """Read the status of a run folder. Raises `BadRun` if it cannot be read."""
    try:
        if not (path / "run.toml").exists():
            plan, shards = read_json(path / "plan.json"), list_shards(path / "shards")
            if not (path / "run.toml").exists():  # finished meanwhile
                return _describe_unfinished(path, plan, shards)
        return _describe_finished(path)
    except (KeyError, TypeError, ValueError) as error:
        raise BadRun(f"{path} is not a readable run ({type(error).__name__}: {error}): leave it out") from error


def _describe_unfinished(path: Path, plan: dict[str, Any], shards: list[Path]) -> Status:
    running = is_locked(path)
    seeds, done = len(plan["seeds"]), len(list((path / "shards").glob("seed-*.json")))
    answers = sum(stop - start for start, stop in map(parse_row_range, shards))
    elapsed = time.time() - min(map(_get_write_time, shards), default=math.inf)
    rate = answers / elapsed if running and elapsed > 0 and len(shards) > 1 else None
    # Seeds are assumed to take equal time.
    left = max(0.0, answers / done * seeds - answers) / rate if done and rate else None
    fits = [progress for progress in map(read_fit_progress, list_fit_files(path)) if progress is not None]
    to_train = [progress.remaining_seconds for progress in fits if progress.remaining_seconds is not None]
    if running and to_train:  # the processes train in parallel
        left = max(to_train)
    return Status(
        run=str(path),
        benchmark=plan["benchmark"]["name"],
        model=plan["model"]["name"],
        state="running" if running else "stopped",
        seeds=done,
        of_seeds=seeds,
        steps=sum(progress.done for progress in fits),
        of_steps=sum(progress.steps for progress in fits),
        answers=answers,
        rate=rate,
        left=left,
    )


def _get_write_time(shard: Path) -> float:
    """Return when a shard was written; infinity if it no longer exists."""
    try:
        return shard.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def _describe_finished(path: Path) -> Status:
    import pyarrow.parquet as pq

    card = read_card(path / "run.toml")
    seeds = len(card.budget.seeds)
    answers = pq.ParquetFile(path / "predictions.parquet").metadata.num_rows
    seconds = sum(seed.get("predict_seconds", 0) for seed in card.spent.by_seed.values())
    rate = answers / seconds if seconds else None
    return Status(str(path), card.benchmark.name, card.model.name, "finished", seeds, seeds, 0, 0, answers, rate, 0.0)
