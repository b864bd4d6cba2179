"""`fit_seconds`: the wall-clock seconds of a training, divided among the replicas that were trained together.

A replica stack's seconds are shared out by the optimiser steps that each replica took (evenly where none took any), so
one that stopped early has less of them. What a training spends beside its steps (encoding the rows, trying how many to
stack, drawing initial weights) is shared out evenly. The shares add up to the seconds of the whole training, those
before a kill among them as far as checkpoints know of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...core.clock import Stopwatch


class FitSeconds:
    """The seconds of a training that is under way, by member."""

    def __init__(self, members: Sequence[str]) -> None:
        self._watch = Stopwatch()
        self._own = dict.fromkeys(members, 0.0)
        self._times = Counter(members)
        self._accounted = 0.0
        """Seconds of this process that belong to a member already."""

    def add(self, seconds: float, steps: Mapping[str, int], before: float = 0.0) -> None:
        """Share out a stack's seconds by the steps that each of its members took. before: those of them that earlier
        processes spent."""
        total = sum(steps.values())
        for member, step_count in steps.items():
            self._own[member] += seconds * (step_count / total if total else 1 / len(steps))
        self._accounted += seconds - before

    def close(self) -> None:
        """The training is done: the seconds outside of any steps are shared out evenly."""
        rest = self._watch.seconds() - self._accounted
        for member in self._own:
            self._own[member] += rest / len(self._own)

    def of(self, member: str) -> float:
        """A member's seconds. Members of one name (settings of equal values) have like shares."""
        return round(self._own[member] / self._times[member], 3)
