"""Scoring: one pure function from a run's predictions to its scores. No torch, no network, no clock.

The same predictions give the same bytes (`Score.json()`) everywhere: offline, on a board, on another platform.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.canonical import canonical_json
from ...core.errors import BadRun
from ..benchmark import SCORER, Benchmark, find_benchmark
from ..metrics import Metric
from ..runs.run import Carded, Run, read_run
from ..statistics.clusters import in_plain_english
from ..statistics.interval import Estimate, gap, mean
from ..statistics.margin import LEVEL
from ..statistics.not_available import NotAvailable
from ..statistics.sample import finite
from ..statistics.variation import variation_of
from .apply_selection import selections
from .breakdown import (
    answer_counts,
    calibration,
    composition,
    extrapolation_of,
    group_scores,
    label_errors,
    severity_curve,
    valley_of,
)
from .measured import Measured, Scored

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Score:
    """The scores of a run: plain JSON in `record`. `spent` is what the model's side reports to have spent, and
    `remarks` what it remarked of each seed (diagnostics among it); they are no part of the score, since they are
    never twice the same."""

    record: dict[str, Any]
    spent: dict[str, Any]
    remarks: dict[str, Any]

    def told(self) -> dict[str, Any]:
        """All of it, for machines to read."""
        return self.record | {"spent": self.spent, "remarks": self.remarks}

    def json(self) -> bytes:
        """Canonical JSON: the bytes that a board stores and anybody can compute again."""
        return canonical_json(self.record)

    def __getitem__(self, key: str) -> Any:
        return self.record[key]

    def __str__(self) -> str:
        record = self.record
        chosen = (
            "" if record["candidates"] == 1 else f", {record['candidates']} candidates, chosen by {record['selection']}"
        )
        lines = [f"{record['model']} on {record['benchmark']} ({record['metric']}, {record['kind']}{chosen})"]
        lines += [f"{name:>10}  {in_words(record[name])}" for name in ("id", "ood", "gap")]
        others = {name: view for name, view in record["views"].items() if name not in ("id", "ood")}
        lines += [f"{name:>10}  {in_words(view)}" for name, view in others.items()]
        if worst := record["worst_group"]:
            lines.append(f'{"worst":>10}  {in_words(worst)}  "{worst["group"]}", of {len(worst["groups"])} groups')
        lines += [_metric_in_words(signature, values) for signature, values in record["metrics"].items()]
        for view, counts in record["answers"].items():
            if counts["answered"] < counts["rows"]:
                lines.append(
                    f"{view}: of {counts['rows']} answers {counts['abstained']} abstained, {counts['failed']} failed; "
                    "each counts as wrong"
                )
        if record["candidates"] > 1:
            lines += _rules_in_words(record)
        spent = ", ".join(f"{name} {value}" for name, value in self.spent.items())
        return "\n".join([*lines, f"{'':>10}  {record['interval']}", f"{'':>10}  spent: {spent}"])


def _metric_in_words(signature: str, values: dict[str, Any]) -> str:
    if "n/a" in values["id"]:
        return f"{signature}: {in_words(values['id'])}"
    return f"{signature}: " + ", ".join(f"{view} {in_words(values[view])}" for view in ("id", "ood", "gap"))


def _rules_in_words(record: dict[str, Any]) -> list[str]:
    lines = []
    for name, found in record["selections"].items():
        if "n/a" in found:
            lines.append(f"  by {name}: n/a, {found['n/a']}")
        else:
            lines.append(f"  by {name}: OOD {in_words(found['ood'])}, regret {in_words(found['regret'])}")
    return lines


def in_words(estimate: dict[str, Any]) -> str:
    """A value and its interval, such as `0.953 [0.941, 0.965]`."""
    if "n/a" in estimate:
        return f"n/a ({estimate['n/a']})"
    return f"{estimate['value']:z.3f} [{estimate['low']:z.3f}, {estimate['high']:z.3f}]"


def score(run: Run | Path | str, selection: str | None = None) -> Score:
    """The scores of a run: ID, OOD, gap, every view, worst group and severity curve, each with its 95 % interval.

    `selection` scores it by another rule than its own, one that the protocol allows. Raises `BadRun` where the run was
    made for another version of the benchmark, or does not hold exactly one prediction per row, seed and candidate.
    """
    if not isinstance(run, Run):
        run = read_run(run)
    benchmark = current(run)
    return score_predictions(benchmark, run.predictions(), run, selection)


def current(run: Run) -> Benchmark:
    """The benchmark of a run; `BadRun` where the run was made for another version of it. One that was made under an
    earlier scorer holds the same predictions, and is scored by this one."""
    benchmark = find_benchmark(run.benchmark)
    if benchmark.made_under(run.entry_identity, run.budget, run.steps, run.selection) is None:
        here = benchmark.identity(run.budget, run.steps, run.selection)
        raise BadRun(
            f"{run.path} was made for another version of {run.benchmark} "
            f"(identity {run.entry_identity[:12]}.., here {here[:12]}..): run it again"
        )
    return benchmark


def entry_identity(run: Run) -> str:
    """The identity of a run's entry under this scorer, whichever it was made under; raises as `current`."""
    return current(run).identity(run.budget, run.steps, run.selection)


def score_predictions(benchmark: Benchmark, predictions: pa.Table, card: Carded, selection: str | None = None) -> Score:
    """The scores of a table of predictions (runs/predictions.py) of the run that `card` is of."""
    benchmark.check()
    rule = benchmark.rule(selection or card.selection)
    scored = Scored(benchmark, predictions, card)
    rules = selections(scored)
    if "n/a" in rules[rule.name]:
        raise BadRun(f"this run cannot be scored by {rule.name}: {rules[rule.name]['n/a']}")
    chosen = {int(seed): name for seed, name in rules[rule.name]["chosen"].items()}
    primary, *others = benchmark.metrics
    views = {name: scored.view(name, chosen) for name in benchmark.definition.views}
    samples = {name: view.by(primary) for name, view in views.items()}
    estimates = {name: mean(sample) for name, sample in samples.items()}
    apart = gap(samples["id"], samples["ood"])
    _hold_defined(estimates | {"gap": apart}, primary)
    groups = group_scores(scored, views["ood"], primary)
    record: dict[str, Any] = {
        "scorer": SCORER,
        "benchmark": benchmark.name,
        "kind": benchmark.kind,
        "entry_identity": benchmark.identity(card.budget, card.steps, rule.name),
        "model": card.model,
        "budget": card.budget,
        "steps": card.steps,
        "seeds": list(card.seeds),
        "protocol_seeds": benchmark.seeds(card.budget),
        "selection": rule.name,
        "candidates": len(card.candidates),
        "metric": primary.signature,
        "better": primary.better,
        "bounds": list(primary.bounds) if finite(primary.bounds) else None,
        "id": estimates["id"].record(),
        "ood": estimates["ood"].record(),
        "gap": apart.record(),
        "views": {name: estimate.record() for name, estimate in estimates.items()},
        "metrics": {metric.signature: _secondary(views, metric) for metric in others},
        "answers": {name: answer_counts(view) for name, view in views.items()},
        "selections": rules,
        "worst_group": groups["worst"],
        "group_quantiles": groups["quantiles"],
        "severity": severity_curve(scored, views, primary),
        "severity_unit": _severity_unit(benchmark),
        "extrapolation": extrapolation_of(scored, views, primary),
        "valley": valley_of(scored, views, primary),
        "calibration": calibration(views),
        "label_errors": label_errors(scored, chosen),
        "composition": composition(scored, views, primary),
        "touched": card.card["spent"].get("touched", []),
        "variation": {name: variation_of(samples[name]) for name in ("id", "ood")},
        "interval": _meaning(len(card.seeds), primary, estimates),
    }
    return Score(record, _spent(card), card.card["spent"].get("by_seed", {}))


def _hold_defined(estimates: dict[str, Estimate], metric: Metric) -> None:
    """Refuse a run whose entry would lack a number that it is compared by."""
    for name, estimate in estimates.items():
        if not estimate.defined:
            raise BadRun(
                f"{metric.signature} is not defined on the view {name}: a row has no answer, answers are too large, or "
                "the rows are too few or do not vary"
            )


def _secondary(views: dict[str, Measured], metric: Metric) -> dict[str, Any]:
    """ID, OOD and gap by another metric; n/a with the reason where it cannot be had."""
    if metric.needs == "scores" and not all(views[name].has_scores for name in ("id", "ood")):
        reason = NotAvailable("the model gave no class probabilities").record()
        return dict.fromkeys(("id", "ood", "gap"), reason)
    samples = [views[name].by(metric) for name in ("id", "ood")]
    found = [mean(samples[0]), mean(samples[1]), gap(*samples)]
    return {name: one.record() for name, one in zip(("id", "ood", "gap"), found, strict=True)}


def _severity_unit(benchmark: Benchmark) -> str:
    severity = benchmark.manifest.definition.severity
    return "" if severity is None else f"{severity.name}, {severity.unit}" if severity.unit else severity.name


def _spent(card: Carded) -> dict[str, Any]:
    """What the run card says was spent, summed over seeds: seconds of `fit` and `predict`, and every number that the
    model's own remarks count up (steps, tokens, requests)."""
    by_seed = card.card["spent"].get("by_seed", {}).values()
    found: dict[str, Any] = {"device": card.card["budget"].get("device", "")}
    for name in sorted({name for seed in by_seed for name in seed} & _COUNTED):
        values = [seed[name] for seed in by_seed if isinstance(seed.get(name), int | float)]
        found[name] = round(sum(values), 3)
    return found


_COUNTED = {
    "fit_seconds",
    "predict_seconds",
    "steps",
    "epochs",
    "prompt_tokens",
    "completion_tokens",
    "requests",
    "cached",
    "failed",
    "extraction_failures",
}


def _meaning(seeds: int, metric: Metric, estimates: dict[str, Estimate]) -> str:
    headline = {name.upper(): estimates[name] for name in ("id", "ood")}
    over = f"rows and {seeds} training seeds" if seeds > 1 else "rows only (one seed: training noise is not in it)"
    if seeds > 1 and all(len(set(estimate.per_seed)) == 1 for estimate in headline.values()):
        over += " that scored alike (trained once and asked again, they say nothing of training noise)"
    how = "" if metric.per_row is not None else ", rows by a delete-a-group jackknife"
    clusters = in_plain_english({name: estimate.clustering for name, estimate in headline.items()})
    return f"[low, high]: {LEVEL:.0%} t interval over {over}{how}{clusters}"
