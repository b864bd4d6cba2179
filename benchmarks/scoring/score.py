"""Scoring: one pure function from a run's predictions to its scores. No torch, no network, no clock.

The same predictions give the same bytes (`Score.json()`) everywhere: offline, on a board, on another platform.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadRun
from ...core.listings.plural import counted
from ..benchmark import SCORER, Benchmark, find_benchmark
from ..metrics import Metric
from ..runs.asked import LimitedBenchmark, limit_of, limited
from ..runs.card import RunCard
from ..runs.run import Run, RunLike, read_run
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
from .measured import AnsweredRows, RunPredictions
from .record import Score, ViewScores

if TYPE_CHECKING:
    import pyarrow as pa


def score(run: Run | Path | str, selection: str | None = None) -> Score:
    """The scores of a run: ID, OOD, gap, every view, worst group and severity curve, each with its 95 % interval.

    `selection` scores it by another rule than its own, one that the protocol allows. Raises `BadRun` where the run was
    made for another version of the benchmark, or does not hold exactly one prediction per row, seed and candidate.

    >>> import farshift as fs
    >>> found = fs.score(fs.baseline("modadd97/xi35", "quadratic-mlp-weight-decay"))
    >>> round(found.id.value, 2), round(found.ood.value, 2)
    (1.0, 1.0)
    >>> sorted(found.to_dict())[:4]
    ['answers', 'benchmark', 'better', 'bounds']
    """
    if not isinstance(run, Run):
        run = read_run(run)
    benchmark = current(run)
    if "streamed" in run.card.model.more:
        from ..blind.streamed import as_kept

        benchmark = as_kept(benchmark)
    return score_predictions(benchmark, run.predictions(), run, selection)


def current(run: Run) -> Benchmark:
    """The benchmark of a run, or what of it the run was limited to; `BadRun` where the run was made for another
    version of it. One that was made under an earlier scorer holds the same predictions, and is scored by this one."""
    benchmark = find_benchmark(run.benchmark)
    if benchmark.made_under(run.entry_identity, run.budget, run.steps, run.selection) is None:
        here = benchmark.identity(run.budget, run.steps, run.selection)
        raise BadRun(
            f"{run.path} was made for another version of {run.benchmark} "
            f"(identity {run.entry_identity[:12]}.., here {here[:12]}..): run it again"
        )
    limit = limit_of(run.card.model.more)
    return benchmark if limit is None else limited(benchmark, limit)


def entry_identity(run: Run) -> str:
    """The identity of a run's entry under this scorer, whichever it was made under; raises as `current`."""
    return current(run).identity(run.budget, run.steps, run.selection)


def score_predictions(benchmark: Benchmark, predictions: pa.Table, run: RunLike, selection: str | None = None) -> Score:
    """The scores of a table of predictions (runs/predictions.py) of `run`."""
    benchmark.check()
    rule = benchmark.rule(selection or run.selection)
    scored = RunPredictions(benchmark, predictions, run)
    rules = selections(scored)
    own = rules[rule.name]
    if isinstance(own, NotAvailable):
        raise BadRun(f"this run cannot be scored by {rule.name}: {own.reason}")
    chosen = dict(own.chosen)
    primary, *others = benchmark.metrics
    views = {name: scored.view(name, chosen) for name in benchmark.definition.views}
    samples = {name: view.by(primary) for name, view in views.items()}
    estimates = {name: mean(sample) for name, sample in samples.items()}
    apart = gap(samples["id"], samples["ood"])
    _hold_defined(estimates | {"gap": apart}, primary)
    worst, quantiles = group_scores(scored, views["ood"], primary)
    return Score(
        scorer=SCORER,
        benchmark=benchmark.name,
        kind=benchmark.kind,
        entry_identity=benchmark.identity(run.budget, run.steps, rule.name),
        model=run.model,
        budget=run.budget,
        steps=run.steps,
        seeds=run.seeds,
        protocol_seeds=benchmark.seeds(run.budget),
        selection=rule.name,
        candidates=len(run.candidates),
        metric=primary.signature,
        better=primary.better,
        bounds=primary.bounds if finite(primary.bounds) else None,
        id=estimates["id"],
        ood=estimates["ood"],
        gap=apart,
        views=estimates,
        metrics={metric.signature: _secondary(views, metric) for metric in others},
        answers={name: answer_counts(view) for name, view in views.items()},
        selections=rules,
        worst_group=worst,
        group_quantiles=quantiles,
        severity=severity_curve(scored, views, primary),
        severity_unit=severity_unit(benchmark),
        extrapolation=extrapolation_of(scored, views, primary),
        valley=valley_of(scored, views, primary),
        calibration=calibration(views),
        label_errors=label_errors(scored, chosen),
        composition=composition(scored, views, primary),
        touched=run.card.spent.touched,
        variation={name: variation_of(samples[name]) for name in ("id", "ood")},
        interval=_meaning(len(run.seeds), primary, estimates) + _limited(benchmark),
        spent=_spent(run.card),
        remarks=run.card.spent.by_seed,
    ).rounded()


def _limited(benchmark: Benchmark) -> str:
    return f"; asked {counted(benchmark.limit, 'row')} of each part" if isinstance(benchmark, LimitedBenchmark) else ""


def _hold_defined(estimates: dict[str, Estimate], metric: Metric) -> None:
    """Refuse a run whose entry would lack a number that it is compared by."""
    for name, estimate in estimates.items():
        if not estimate.defined:
            raise BadRun(
                f"{metric.signature} is not defined on the view {name}: a row has no answer, answers are too large, or "
                "the rows are too few or do not vary"
            )


def _secondary(views: dict[str, AnsweredRows], metric: Metric) -> ViewScores:
    """ID, OOD and gap by another metric, or the reason why they are not available."""
    if metric.needs == "scores" and not all(views[name].has_scores for name in ("id", "ood")):
        without = NotAvailable("the model gave no class probabilities")
        return ViewScores(without, without, without)
    on_id, on_ood = (views[name].by(metric) for name in ("id", "ood"))
    return ViewScores(mean(on_id), mean(on_ood), gap(on_id, on_ood))


def severity_unit(benchmark: Benchmark) -> str:
    """What the severity of a benchmark's rows is, and its unit; empty where rows have none."""
    severity = benchmark.manifest.definition.severity
    return "" if severity is None else f"{severity.name}, {severity.unit}" if severity.unit else severity.name


def _spent(card: RunCard) -> dict[str, Any]:
    """What the run card says was spent, summed over seeds: seconds of `fit` and `predict`, and every number that the
    model's own remarks count up (steps, tokens, requests)."""
    by_seed = card.spent.by_seed.values()
    found: dict[str, Any] = {"device": card.budget.device}
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


_ROWS_BY = {True: "a delete-a-group jackknife", False: "balanced half-samples"}


def _meaning(seeds: int, metric: Metric, estimates: dict[str, Estimate]) -> str:
    headline = {name.upper(): estimates[name] for name in ("id", "ood")}
    over = f"rows and {seeds} training seeds" if seeds > 1 else "rows only (one seed: training noise is not in it)"
    if seeds > 1 and all(len(set(estimate.per_seed)) == 1 for estimate in headline.values()):
        over += " that scored alike (trained once and asked again, they say nothing of training noise)"
    how = "" if metric.per_row is not None else f", rows by {_ROWS_BY[metric.smooth]}"
    clusters = in_plain_english({name: estimate.clustering for name, estimate in headline.items()})
    return f"[low, high]: {LEVEL:.0%} t interval over {over}{how}{clusters}"
