"""`fit_seconds`: the wall-clock seconds of a training, divided among the replicas that were trained together.

A stack's seconds are divided in proportion to the optimiser steps of each replica (evenly if there were none), so one
that stopped early has fewer. What a training spends besides its steps (encoding the rows, trying stack sizes, drawing
initial weights) is divided evenly. The shares add up to the seconds of the whole training, including those before an
interruption if a checkpoint recorded them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...core.clock import Stopwatch


class FitSeconds:
    """The seconds of a running training, by member."""

    def __init__(self, members: Sequence[str]) -> None:
        self._watch = Stopwatch()
        self._own = dict.fromkeys(members, 0.0)
        self._times = Counter(members)
        self._accounted = 0.0
        """Seconds of this process that have been attributed to members."""

    def add(self, seconds: float, steps: Mapping[str, int], before: float = 0.0) -> None:
        """Divide a stack's seconds in proportion to its members' steps. before: the seconds among them that earlier
        processes spent."""
        total = sum(steps.values())
        for member, step_count in steps.items():
            self._own[member] += seconds * (step_count / total if total else 1 / len(steps))
        self._accounted += seconds - before

    def close(self) -> None:
        """The training is done: divide the remaining seconds evenly."""
        rest = self._watch.seconds() - self._accounted
        for member in self._own:
            self._own[member] += rest / len(self._own)

    def of(self, member: str) -> float:
        """A member's seconds. Members of one name (settings of equal values) have equal shares."""
        return round(self._own[member] / self._times[member], 3)
