"""How far the training of a run under way is: small files in its folder, which `farshift status` reads.

training/steps-0.json      the replica group whose first seed is 0
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...core.canonical import to_canonical_json
from ...core.files import write_atomically

TRAINING = "training"
"""The folder, in a run folder under way, of checkpoints and of these files."""


@dataclass(frozen=True)
class FitProgress:
    """What one process has trained of its replicas. done: optimiser steps, of all replicas together (of an estimator,
    replicas), out of `steps`; `first` of them were there when it began. seconds: of wall clock since then. loss: the
    mean over the replicas that are trained now; None before there is one."""

    done: int
    steps: int
    first: int
    seconds: float
    loss: float | None = None

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds still to go at the pace so far; None where it is not known, or all is done."""
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
    """Where the process that trains these seeds says how far it is."""
    return run / TRAINING / f"steps-{seeds[0]}.json"


def list_fit_files(run: Path) -> list[Path]:
    return sorted((run / TRAINING).glob("steps-*.json"))


def read_fit_progress(path: Path) -> FitProgress | None:
    """What a file says; None where it is gone."""
    try:
        return FitProgress(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
