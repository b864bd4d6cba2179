"""Scoring, a pure function from a run's predictions to its scores. No torch, no network, no clock.

The same predictions give the same bytes (`Score.json()`) on every platform, offline and on a board.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadRun
from ...core.text import format_count
from ..benchmark import SCORER, Benchmark, find_benchmark
from ..metrics import Metric
from ..model import Task
from ..runs.run import Run, RunCard, RunLike, read_run
from ..statistics.aggregate import Scale
from ..statistics.clusters import describe_clusters
from ..statistics.interval import Estimate, NotAvailable, estimate_gap, estimate_mean, has_split_seeds
from ..statistics.variance_estimate import LEVEL, has_finite_ends
from ..statistics.variation import estimate_variation
from .answered_rows import AnsweredRows, RunPredictions
from .apply_selection import score_selections
from .breakdown import (
    compute_calibration,
    compute_composition,
    compute_extrapolation,
    compute_severity_curve,
    compute_valley,
    count_answers,
    detect_label_errors,
    score_groups,
)
from .record import Score, ViewScores

if TYPE_CHECKING:
    import pyarrow as pa


def score(run: Run | Path | str, selection: str | None = None) -> Score:
    """Score a run: ID, OOD, gap, every view, worst group and severity curve, each with its 95 % interval.

    `selection`: another selection rule than the run's, one that the protocol permits. Raises `BadRun` if the run was
    made for another version of the benchmark, or does not have exactly one prediction per row, seed and candidate.

    >>> import farshift as fs
    >>> score = fs.score(fs.baseline("modadd97/xi35", "quadratic-mlp-weight-decay"))
    >>> round(score.id.value, 2), round(score.ood.value, 2)
    (1.0, 1.0)
    >>> sorted(score.to_dict())[:4]
    ['answers', 'benchmark', 'better', 'bounds']
    """
    if not isinstance(run, Run):
        run = read_run(run)
    benchmark = get_run_benchmark(run)
    if "streamed" in run.card.model.extra:
        from ..model_inputs.load import use_cached_stream

        benchmark = use_cached_stream(benchmark)
    return score_predictions(benchmark, run.predictions(), run, selection)


def get_run_benchmark(run: Run) -> Benchmark:
    """Return the benchmark of a run, limited if the run is; `BadRun` if the run was made for another version of it. A
    run made under an earlier scorer has the same predictions, and is scored by this one."""
    benchmark = find_benchmark(run.benchmark)
    if benchmark.made_under(run.entry_identity, run.budget, run.steps, run.selection) is None:
        identity = benchmark.identity(run.budget, run.steps, run.selection)
        raise BadRun(
            f"{run.path} was made for another version of {run.benchmark} "
            f"(identity {run.entry_identity[:12]}.., here {identity[:12]}..): run it again"
        )
    limit = run.card.model.limit
    return benchmark if limit is None else replace(benchmark, limit=limit)


def compute_entry_identity(run: Run) -> str:
    """Return the identity of a run's entry under the current scorer, another one for a trial on fewer rows; raises like
    `get_run_benchmark`."""
    limit = run.card.model.limit
    trial = "" if limit is None else f", limit {limit}"
    return get_run_benchmark(run).identity(run.budget, run.steps, run.selection) + trial


def score_predictions(benchmark: Benchmark, predictions: pa.Table, run: RunLike, selection: str | None = None) -> Score:
    """Score a table of predictions (runs/predictions.py) of `run`."""
    benchmark.check()
    rule = benchmark.rule(selection or run.selection)
    scored = RunPredictions(benchmark, predictions, run)
    rules = score_selections(scored)
    own = rules[rule.name]
    if isinstance(own, NotAvailable):
        raise BadRun(f"this run cannot be scored by {rule.name}: {own.reason}")
    chosen = dict(own.chosen)
    primary, *others = benchmark.metrics
    views = {name: scored.view(name, chosen) for name in benchmark.definition.views}
    samples = {name: view.by(primary) for name, view in views.items()}
    estimates = {name: estimate_mean(sample) for name, sample in samples.items()}
    score_gap = estimate_gap(samples["id"], samples["ood"])
    _check_defined(estimates | {"gap": score_gap}, primary)
    worst, quantiles = score_groups(scored, views["ood"], primary)
    return Score(
        scorer=SCORER,
        benchmark=benchmark.name,
        kind=benchmark.kind,
        entry_identity=benchmark.identity(run.budget, run.steps, rule.name),
        model=run.model,
        budget=run.budget,
        steps=run.steps,
        seeds=run.seeds,
        protocol_seeds=1 if run.card.model.deterministic else benchmark.seeds(run.budget),
        deterministic=run.card.model.deterministic,
        selection=rule.name,
        candidates=len(run.candidates),
        metric=primary.signature,
        better=primary.better,
        bounds=primary.bounds if has_finite_ends(primary.bounds) else None,
        id=estimates["id"],
        ood=estimates["ood"],
        gap=score_gap,
        views=estimates,
        metrics={metric.signature: _score_secondary(views, metric) for metric in others},
        answers={name: count_answers(view) for name, view in views.items()},
        selections=rules,
        worst_group=worst,
        group_quantiles=quantiles,
        severity=compute_severity_curve(scored, views, primary),
        severity_unit=get_severity_unit(benchmark),
        extrapolation=compute_extrapolation(scored, views, primary),
        valley=compute_valley(scored, views, primary),
        calibration=compute_calibration(views),
        label_errors=detect_label_errors(scored, chosen),
        composition=compute_composition(scored, views, primary),
        touched=run.card.spent.touched,
        variation={name: estimate_variation(samples[name]) for name in ("id", "ood")},
        interval=_describe_interval(run, primary, estimates)
        + (f" on {format_count(benchmark.limit, 'row')} of each part" if benchmark.limit is not None else ""),
        spent=_sum_usage(run.card),
        remarks=run.card.spent.by_seed,
    ).rounded()


def _check_defined(estimates: dict[str, Estimate], metric: Metric) -> None:
    """Raise `BadRun` if a score that entries are compared by is undefined."""
    for name, estimate in estimates.items():
        if not estimate.defined:
            why = estimate.why or "the rows are too few or do not vary"
            raise BadRun(f"{metric.name} is not defined on the view {name}: {why}")


def _score_secondary(views: dict[str, AnsweredRows], metric: Metric) -> ViewScores:
    """Return ID, OOD and gap by another metric, or the reason why they are not available."""
    if metric.needs == "scores" and not all(views[name].has_scores for name in ("id", "ood")):
        without = NotAvailable("the model gave no class probabilities")
        return ViewScores(without, without, without)
    on_id, on_ood = (views[name].by(metric) for name in ("id", "ood"))
    return ViewScores(estimate_mean(on_id), estimate_mean(on_ood), estimate_gap(on_id, on_ood))


def get_severity_unit(benchmark: Benchmark) -> str:
    """Return the name of the severity of a benchmark's rows with its unit; empty if rows have none."""
    severity = benchmark.manifest.definition.severity
    return "" if severity is None else f"{severity.name}, {severity.unit}" if severity.unit else severity.name


def _sum_usage(card: RunCard) -> dict[str, Any]:
    """Return the usage on the run card, summed over seeds: seconds of `fit` and `predict`, and each number that the
    model's remarks count (steps, tokens, requests)."""
    by_seed = card.spent.by_seed.values()
    usage: dict[str, Any] = {"device": card.budget.device}
    for name in sorted({name for seed in by_seed for name in seed} & _COUNTED):
        values = [seed[name] for seed in by_seed if isinstance(seed.get(name), int | float)]
        usage[name] = round(sum(values), 3)
    return usage


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


def _describe_interval(run: RunLike, metric: Metric, estimates: dict[str, Estimate]) -> str:
    seeds = len(run.seeds)
    headline = {name.upper(): estimates[name] for name in ("id", "ood")}
    over = f"rows and {seeds} training seeds" if seeds > 1 else "rows only (one seed: training noise is not in it)"
    if run.card.model.deterministic:
        over = "rows (a deterministic model: no training noise)"
    if seeds > 1 and all(len(set(estimate.per_seed)) == 1 for estimate in headline.values()):
        over += " with equal scores (if the model was trained once, this does not measure training noise)"
    how = "" if metric.per_row is not None else f", rows by {_ROWS_BY[metric.smooth]}"
    clusters = describe_clusters({name: estimate.clustering for name, estimate in headline.items()})
    split = "".join(
        f"; on {name} some seeds learn and others fail ({' '.join(f'{value:.3f}' for value in estimate.per_seed)}): "
        "[low, high] is their range"
        for name, estimate in headline.items()
        if has_split_seeds(estimate.per_seed, metric.bounds)
    )
    return f"[low, high]: {LEVEL:.0%} t interval over {over}{how}{clusters}{split}"


def compute_chance(metric: Metric, task: Task) -> float | None:
    """Return the score of random guessing; None if the task does not determine it."""
    return None if metric.chance is None else metric.chance(task)


def make_scale(benchmark: Benchmark) -> Scale | None:
    """Return the normalised scale of a benchmark's primary metric; None if it has none."""
    metric = benchmark.metrics[0]
    level = compute_chance(metric, benchmark.task)
    return None if level is None else Scale(level, metric.bounds[1 if metric.better == "higher" else 0])
