"""Whether a model has learnt a task in distribution. If it has not, its OOD score does not measure the shift.

A result's ID score is marked as low if a seed is no better on the ID rows than a constant prediction, below which a
board does not rank (leaderboard/tables/ranking.py); or if a seed is less than half way from there to the best known ID
score, and the whole interval of the gap is on the side of a loss under the shift. Without the second condition an
algorithm that trades ID score for what holds in all domains would be marked, such as IRM on ColoredMNIST.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..statistics.ranks import Better

SHARE = 0.5
"""Required share of the way from a constant prediction to the best ID score."""

MARK = "low ID score"


@dataclass(frozen=True)
class TrainedCheck:
    """The ID score that each seed must exceed. floor: that of a constant prediction; best: the best known one, or the
    floor where no model is better, which marks all."""

    floor: float
    best: float
    better: Better = "higher"

    @classmethod
    def of(cls, floors: Iterable[float | None], ids: Iterable[float], better: Better) -> TrainedCheck | None:
        """Make the rule from the ID scores of some models; the floor is the best score of constant predictions. None if
        no such score is known, or no model's."""
        pick = max if better == "higher" else min
        known, scores = [constant_score for constant_score in floors if constant_score is not None], list(ids)
        if not known or not scores:
            return None
        floor = pick(known)
        return cls(floor, pick(floor, *scores), better)

    @property
    def least(self) -> float:
        return self.floor + SHARE * (self.best - self.floor)

    def reason(self, score: Any) -> str:
        """Return why a result is marked; empty if it is not. score: its `seeds`, their ID scores (`id.per_seed`), and
        the interval of the gap, ID minus OOD (`gap.low`, `gap.high`)."""
        sign = 1 if self.better == "higher" else -1
        worst, seed = min((sign * value, seed) for seed, value in zip(score.seeds, score.id.per_seed, strict=True))
        finding = f"seed {seed} scores {sign * worst:.3g} on ID, "
        if worst <= sign * self.floor:
            return f"{finding}no better than a constant prediction ({self.floor:.3g})"
        loses = score.gap.low > 0 if sign > 0 else score.gap.high < 0
        if worst > sign * self.least or not loses:
            return ""
        return (
            f"{finding}less than half way from a constant prediction ({self.floor:.3g}) to the best score "
            f"({self.best:.3g})"
        )
