"""What of an entry is against the protocol, as far as its card and its predictions show. Such an entry is scored and
listed, and not ranked: it says what it is about it.

A card is its author's word. What it admits is held to the protocol here; that it admits all cannot be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.scoring.measured import RunPredictions
from ...benchmarks.selection import Rule
from ...benchmarks.statistics.one_list import ALARM, mismatch
from ...benchmarks.statistics.sample import RowScores
from ..submission.validate import ValidRun

VALIDATION = "id_val"


def oddities(entry: ValidRun, scored: RunPredictions) -> tuple[str, ...]:
    """What is against the protocol in a run, each in a few words."""
    return (*_touched(entry), *_spent(entry), *_forged(entry.benchmark, entry.benchmark.rule(entry.selection), scored))


def _touched(entry: ValidRun) -> Iterator[str]:
    touch = entry.benchmark.definition.protocol.touch
    opened = {"ood_val": touch.ood_val_labels and entry.benchmark.has_part("ood_val")}
    opened["unlabelled"] = touch.ood_test_inputs
    for name in sorted(set(entry.card.spent.touched)):
        if not opened.get(name, False):
            yield f"its training touched {name}, which the protocol does not open"


def _spent(entry: ValidRun) -> Iterator[str]:
    ceiling = entry.benchmark.definition.protocol.ceiling
    steps = [(entry.steps, "its table is of")] if entry.steps is not None else []
    for key, limits in (
        ("steps", [*steps, (ceiling.steps, "the protocol allows")]),
        ("epochs", [(ceiling.epochs, "the protocol allows")]),
        ("fit_seconds", [(ceiling.device_seconds, "the protocol allows")]),
    ):
        used = max((_number(spent.get(key)) for spent in entry.card.spent.by_seed.values()), default=0.0)
        for most, whose in limits:
            if most is not None and used > most:
                yield f"a seed spent {used:g} {key.replace('fit_', '')}, and {whose} {most:g}"


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _forged(benchmark: Benchmark, rule: Rule, scored: RunPredictions) -> Iterator[str]:
    """Whether candidates were chosen by validation predictions that do not fit the same candidates' ID test."""
    if scored.part_of(rule) != VALIDATION or benchmark.metrics[0].per_row is None or len(scored.candidates) < 2:
        return
    part, ballot = benchmark.part(VALIDATION), rule.ballot(benchmark)
    test, truth = benchmark.view("id")
    where = benchmark.definition.views["id"].part
    if where == VALIDATION or ballot is None:
        return
    named = [one for one in scored.candidates if scored.has(VALIDATION, one) and scored.has(where, one)]

    def measured(name: str, rows: Any, labels: Any) -> list[RowScores]:
        found = (scored.rows(name, rows, labels, dict.fromkeys(scored.seeds, one)) for one in named)
        samples = (one.by(benchmark.metrics[0]) for one in found)
        return [sample for sample in samples if isinstance(sample, RowScores)]

    found = mismatch(measured(VALIDATION, part, ballot.labels), measured(where, test, truth))
    if found is not None:
        yield (
            f"its candidate {named[found.candidate]} of seed {scored.seeds[found.seed]} stands {found.validation:+.3f} "
            f"beside the others on validation rows and {found.test:+.3f} on the ID test (p {found.p:.1g}, alarm at "
            f"{ALARM:g}): its choice cannot be trusted"
        )
