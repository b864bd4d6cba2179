"""Whether a model has learnt a task in distribution. Where it has not, its OOD score says nothing of the shift.

A result is marked where a seed is no better on the ID rows than a constant answer, below which a board ranks nobody
(leaderboard/tables/ranked_set.py); or where a seed is not half way from there to the best ID score that is known, and
the whole interval of the gap says that the shift costs something. Without the second half an algorithm that gives up
part of its ID score for what holds everywhere would be marked for it, as IRM on ColoredMNIST.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..statistics.ranks import Better

SHARE = 0.5
"""Of the way from a constant answer to the best ID score."""

MARK = "ID not learnt"


class _Estimate(Protocol):
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def per_seed(self) -> Sequence[float]: ...


class Scored(Protocol):
    """What the rule reads of a score: its seeds, its ID score in each, and the interval of its gap (ID minus OOD)."""

    @property
    def seeds(self) -> Sequence[int]: ...
    @property
    def id(self) -> _Estimate: ...
    @property
    def gap(self) -> _Estimate: ...


@dataclass(frozen=True)
class TrainedCheck:
    """What ID score every seed must pass. floor: a constant answer's; best: the best one that is known."""

    floor: float
    best: float
    better: Better = "higher"

    @classmethod
    def of(cls, floors: Iterable[float | None], ids: Iterable[float], better: Better) -> TrainedCheck | None:
        """The rule of the ID scores of some models; the floor is the best of what constant answers score. None where
        no such score is known, or where no model is better."""
        pick = max if better == "higher" else min
        known, scores = [constant_score for constant_score in floors if constant_score is not None], list(ids)
        if not known or not scores:
            return None
        floor, best = pick(known), pick(scores)
        return None if pick(floor, best) == floor else cls(floor, best, better)

    @property
    def least(self) -> float:
        return self.floor + SHARE * (self.best - self.floor)

    def reason(self, score: Scored) -> str:
        """Why a result is marked; empty where it is not."""
        sign = 1 if self.better == "higher" else -1
        worst, seed = min((sign * value, seed) for seed, value in zip(score.seeds, score.id.per_seed, strict=True))
        finding = f"seed {seed} scores {sign * worst:.3g} on ID, "
        if worst <= sign * self.floor:
            return f"{finding}no better than a constant answer ({self.floor:.3g})"
        loses = score.gap.low > 0 if sign > 0 else score.gap.high < 0
        if worst > sign * self.least or not loses:
            return ""
        return f"{finding}not half way from a constant answer ({self.floor:.3g}) to the best score ({self.best:.3g})"
