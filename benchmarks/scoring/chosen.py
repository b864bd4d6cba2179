"""The selected candidates of a run and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..runs.run import Run
from .record import Score, SelectionScore


@dataclass(frozen=True)
class ChosenCandidate:
    """A selected candidate. candidate: its name, the setting's before the checkpoint's; settings: the setting's values,
    as on the run card; seeds: those for which it was selected."""

    candidate: str
    settings: Mapping[str, Any]
    seeds: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self) | {"settings": dict(self.settings), "seeds": list(self.seeds)}

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {_format_value(value)}" for name, value in self.settings.items())
        seeds = f"seed{'s' if len(self.seeds) > 1 else ''} {', '.join(map(str, self.seeds))}"
        return f"{self.candidate}{f' ({values})' if values else ''} for {seeds}"


def _format_value(value: Any) -> str:
    """Format a value: numbers with four digits; `to_dict` has all digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def list_chosen_candidates(run: Run, score: Score) -> list[ChosenCandidate]:
    """List the candidates selected by the rule that a run is scored by, in their order; empty if it has only one."""
    own = score.selections.get(score.selection)
    if len(run.candidates) < 2 or not isinstance(own, SelectionScore):
        return []
    named = run.card.model.extra.get("settings", {})
    return [
        ChosenCandidate(candidate, named.get(candidate.rpartition("/")[0], {}), seeds)
        for candidate in run.candidates
        if (seeds := tuple(seed for seed in run.seeds if own.chosen[seed] == candidate))
    ]
