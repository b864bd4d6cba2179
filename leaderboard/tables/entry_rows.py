"""What a table needs of an entry, computed from its run: the score of every row, the score of the best constant
prediction, protocol violations, and its cards.

Cards are self-reported and unverified: what a card reports is checked against the protocol; violations that it omits
are not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.answers import Answers
from ...benchmarks.metrics import Metric
from ...benchmarks.runs.run import RunCard
from ...benchmarks.scoring.answered_rows import AnsweredRows, RunPredictions
from ...benchmarks.scoring.breakdown import MAX_GROUPS
from ...benchmarks.scoring.score import compute_chance
from ...benchmarks.statistics.ranks import Better
from ...benchmarks.statistics.sample import RowScores, Sample
from ...benchmarks.statistics.worst_group import estimate_worst_group
from ...core.documents import parse_json
from ..contamination import list_declared_overlaps
from ..submission.validate import ValidRun
from ..validation.card import ModelCard

VIEWS = ("id", "ood")

CONSTANTS = 5
"""Number of most frequent labels that are tried as the constant prediction."""

MOST, LONGEST = 20, 200
"""Maximum numbers of lines of a card's table and of characters of a value, so that a page can show them."""


@dataclass(frozen=True)
class EntryRows:
    """An entry's rows by the primary metric: those of the ID and the OOD view. worst: its worst OOD group, with a
    selection-adjusted interval; None without two groups of at least two rows each. declared: the training data that its
    model card declares, compared with the benchmark (contamination.py). floor: the score of the best constant
    prediction on the ID rows, None if undefined; odd: its protocol violations; card: the content of its cards."""

    id: Sample
    ood: Sample
    worst: dict[str, Any] | None = None
    declared: tuple[dict[str, Any], ...] = ()
    floor: float | None = None
    odd: tuple[str, ...] = ()
    card: Mapping[str, Any] = field(default_factory=dict)


def compute_entry_rows(entry: ValidRun, model: ModelCard) -> EntryRows:
    """Compute the rows of a validated run. Opens the benchmark's data. model: the model card of its team."""
    benchmark = entry.benchmark
    scored = RunPredictions(benchmark, entry.predictions, entry)
    chosen = scored.choose(benchmark.rule(entry.selection))
    metric = benchmark.metrics[0]
    id_rows, ood_rows = (scored.view(view, chosen) for view in VIEWS)
    on_id, on_ood = id_rows.by(metric), ood_rows.by(metric)
    groups = benchmark.view("ood")[0].row_metadata.get("group")
    return EntryRows(
        on_id,
        on_ood,
        None if groups is None else _find_worst_group(on_ood, groups, metric.better),
        tuple(list_declared_overlaps(model, benchmark)),
        _compute_constant_baseline(id_rows, metric),
        (*_list_data_violations(entry), *_list_budget_violations(entry)),
        make_entry_card(entry.card, model),
    )


def _find_worst_group(sample: Sample, groups: NDArray[Any], better: Better) -> dict[str, Any] | None:
    """The worst group of a mean of rows: name, number of groups, rows, score and interval (worst_group.py)."""
    names, numbers, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if not isinstance(sample, RowScores) or not 2 <= len(names) <= MAX_GROUPS or counts.min() < 2:
        return None
    result = estimate_worst_group(sample, numbers.astype(np.int64), better)
    where = {"group": str(names[result.group]), "of": len(names), "rows": int(counts[result.group])}
    return where | result.to_dict()


def _compute_constant_baseline(rows: AnsweredRows, metric: Metric) -> float | None:
    """The score of the best constant prediction on some rows, computed from their labels: the most frequent class or
    text, the mean or median number; for a metric of scores, that of guessing. None if it is not defined."""
    task = rows.task
    if metric.needs == "scores" or task.type == "multilabel":
        return compute_chance(metric, task)
    if task.type == "regression":
        constants: list[Any] = [float(np.mean(rows.truth)), float(np.median(rows.truth))]
    else:
        kinds, counts = np.unique(rows.truth, return_counts=True)
        constants = [kinds[k] for k in np.argsort(-counts, kind="stable")[:CONSTANTS]]
    dtype = object if task.in_text else np.float64 if task.type == "regression" else np.int64
    values = []
    for constant in constants:
        answers = Answers.all_given(np.full(len(rows.truth), constant, dtype))
        values.append(AnsweredRows(task, rows.row_ids, rows.truth, [answers], None, rows.columns).value(metric))
    known = [value for value in values if np.isfinite(value)]
    return None if not known else max(known) if metric.better == "higher" else min(known)


def _list_data_violations(entry: ValidRun) -> Iterator[str]:
    touch = entry.benchmark.definition.protocol.touch
    opened = {"ood_val": touch.ood_val_labels and entry.benchmark.has_part("ood_val")}
    opened["unlabelled"] = touch.ood_test_inputs
    for name in sorted(set(entry.card.spent.touched)):
        if not opened.get(name, False):
            yield f"its training used {name}, which the protocol does not permit"


def _list_budget_violations(entry: ValidRun) -> Iterator[str]:
    ceiling, allowed = entry.benchmark.definition.protocol.ceiling, "the protocol allows"
    for key, most, whose in (
        ("steps", entry.steps, "its table is of"),
        ("steps", ceiling.steps, allowed),
        ("epochs", ceiling.epochs, allowed),
        ("fit_seconds", ceiling.device_seconds, allowed),
    ):
        values: list[Any] = [spent.get(key) for spent in entry.card.spent.by_seed.values()]
        used = max((float(value) for value in values if _is_number(value)), default=0.0)
        if most is not None and used > most:
            yield f"a seed used {used:g} {key.replace('fit_', '')}, and {whose} {most:g}"


def make_entry_card(run: RunCard, model: ModelCard) -> dict[str, Any]:
    """Return what the run card (environment, model, resources used) and the model card (the team's declarations) state,
    as plain JSON. parameters: the model's size from its model card, else as reported by the run (largest over seeds).
    pretrained: the data of its pretrained weights. declared: the model card. environment: name to text. Missing values
    are left out; a recorded result has the usage of the run that made its predictions as text."""
    usage: dict[str, Any] = {name: getattr(run.spent, name) for name in ("finished", "seconds", "by_seed")}
    with suppress(KeyError, ValueError):
        usage |= parse_json(str(run.model.extra["spent"]), dict)
    seeds = usage["by_seed"].values() if isinstance(usage["by_seed"], Mapping) else ()
    reports = [seed for seed in seeds if isinstance(seed, Mapping)]

    def find_largest(name: str) -> int | None:
        values: list[Any] = [report.get(name) for report in reports]
        return max((int(value) for value in values if _is_size(value) and value == int(value)), default=None)

    weights = run.model.extra.get("pretrained")
    entries = [entry for entry in weights if isinstance(entry, dict)] if isinstance(weights, list) else []
    contents = {
        "kind": _truncate_text(run.model.kind),
        "code": _truncate_text(run.model.code),
        "device": _truncate_text(run.budget.device),
        "finished": _truncate_text(usage["finished"]),
        "seconds": float(usage["seconds"]) if _is_size(usage["seconds"]) else None,
        "parameters": find_largest("parameters") if model.parameters is None else model.parameters,
        "steps": find_largest("steps"),
        "pretrained": _truncate_text(
            ", ".join(dict.fromkeys(str(entry["trained_on"]) for entry in entries if "trained_on" in entry))
        ),
        "environment": {
            _truncate_text(name): _truncate_text(value) for name, value in sorted(run.environment.items())[:MOST]
        },
        "declared": model.record(),
    }
    return {name: value for name, value in contents.items() if value not in (None, "", {})}


def _is_size(value: Any) -> bool:
    return _is_number(value) and 0 <= value < 2**63


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _truncate_text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
