"""Protocol violations of an entry, as far as its card reports them. The entry is scored and listed with the reason,
but not ranked.

Cards are self-reported: what a card reports is checked against the protocol; violations that it omits are not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..submission.validate import ValidRun


def list_protocol_violations(entry: ValidRun) -> tuple[str, ...]:
    """The protocol violations of a run, each in a few words."""
    return (*_list_data_violations(entry), *_list_budget_violations(entry))


def _list_data_violations(entry: ValidRun) -> Iterator[str]:
    touch = entry.benchmark.definition.protocol.touch
    opened = {"ood_val": touch.ood_val_labels and entry.benchmark.has_part("ood_val")}
    opened["unlabelled"] = touch.ood_test_inputs
    for name in sorted(set(entry.card.spent.touched)):
        if not opened.get(name, False):
            yield f"its training touched {name}, which the protocol does not open"


def _list_budget_violations(entry: ValidRun) -> Iterator[str]:
    ceiling = entry.benchmark.definition.protocol.ceiling
    steps = [(entry.steps, "its table is of")] if entry.steps is not None else []
    for key, limits in (
        ("steps", [*steps, (ceiling.steps, "the protocol allows")]),
        ("epochs", [(ceiling.epochs, "the protocol allows")]),
        ("fit_seconds", [(ceiling.device_seconds, "the protocol allows")]),
    ):
        used = max((_to_number(spent.get(key)) for spent in entry.card.spent.by_seed.values()), default=0.0)
        for most, whose in limits:
            if most is not None and used > most:
                yield f"a seed spent {used:g} {key.replace('fit_', '')}, and {whose} {most:g}"


def _to_number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
