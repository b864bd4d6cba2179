"""What the cards of an entry say: its run card (environment, model, what was spent) and its model card (what its team
declares). Their authors' word, cut to what a page can show; nothing in it is checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...benchmarks.runs.card import RunCard
from ..validation.card import ModelCard

MOST, LONGEST = 20, 200
"""The most lines of a card's table, and characters of a value, that are kept."""


def make_entry_card(run: RunCard, model: ModelCard) -> dict[str, Any]:
    """Plain JSON. parameters: the model's size, as its card declares it, else as the run reports it (the largest of its
    seeds); None where neither does. declared: the model card. environment: by name, in words. What is not said is not
    there."""
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
    """What the run that made the predictions spent; a recorded result tells it in a text of its own."""
    try:
        recorded = json.loads(str(run.model.extra["spent"]))
    except (KeyError, ValueError, RecursionError):
        recorded = None
    if isinstance(recorded, dict):
        return recorded
    return {"finished": run.spent.finished, "seconds": run.spent.seconds, "by_seed": run.spent.by_seed}


def _find_largest(by_seed: Any, name: str) -> int | None:
    """The largest of a whole number that some seeds report."""
    seeds = by_seed.values() if isinstance(by_seed, Mapping) else ()
    values = [_to_number(seed.get(name)) for seed in seeds if isinstance(seed, Mapping)]
    known = [int(value) for value in values if value is not None and value == int(value)]
    return max(known, default=None)


def _to_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < 2**63 else None


def _truncate_text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
