"""The cards of an entry: its run card (environment, model, resources used) and its model card (the team's
declarations). Both are self-reported and unverified; values are cut to a size that a page can show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...benchmarks.runs.card import RunCard
from ..validation.card import ModelCard

MOST, LONGEST = 20, 200
"""Maximum numbers of lines of a card's table and of characters of a value."""


def make_entry_card(run: RunCard, model: ModelCard) -> dict[str, Any]:
    """Return plain JSON. parameters: the model's size from its model card, else as reported by the run (largest over
    seeds), None if unknown. declared: the model card. environment: name to text. Missing values are left out."""
    usage = _get_usage(run)
    contents = {
        "kind": _truncate_text(run.model.kind),
        "code": _truncate_text(run.model.code),
        "device": _truncate_text(run.budget.device),
        "finished": _truncate_text(usage.get("finished", run.spent.finished)),
        "seconds": _to_number(usage.get("seconds", run.spent.seconds)),
        "parameters": model.parameters
        if model.parameters is not None
        else _find_largest(usage.get("by_seed"), "parameters"),
        "steps": _find_largest(usage.get("by_seed"), "steps"),
        "environment": {
            _truncate_text(name): _truncate_text(value) for name, value in sorted(run.environment.items())[:MOST]
        },
        "declared": model.record(),
    }
    return {name: value for name, value in contents.items() if value not in (None, "", {})}


def _get_usage(run: RunCard) -> Mapping[str, Any]:
    """The resources used by the run that made the predictions; a recorded result has them as text."""
    try:
        recorded = json.loads(str(run.model.extra["spent"]))
    except (KeyError, ValueError, RecursionError):
        recorded = None
    if isinstance(recorded, dict):
        return recorded
    return {"finished": run.spent.finished, "seconds": run.spent.seconds, "by_seed": run.spent.by_seed}


def _find_largest(by_seed: Any, name: str) -> int | None:
    """The largest value of an integer that some seeds report."""
    seeds = by_seed.values() if isinstance(by_seed, Mapping) else ()
    values = [_to_number(seed.get(name)) for seed in seeds if isinstance(seed, Mapping)]
    known = [int(value) for value in values if value is not None and value == int(value)]
    return max(known, default=None)


def _to_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < 2**63 else None


def _truncate_text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
