"""The training progress of an unfinished run: small files in its folder, which `farshift status` reads.

training/steps-0.json      the replica group whose first seed is 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...core.canonical import to_canonical_json
from ...core.documents import read_json
from ...core.files import write_atomically

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
