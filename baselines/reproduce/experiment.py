"""The runs of a claim: plans for the harness, recorded results, or stored predictions of an earlier reproduction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.claims.claim import Claim, Score, TrainedBaseline
from ...benchmarks.claims.outcome import HOME
from ...benchmarks.harness.evaluate import list_seeds
from ...benchmarks.model import Budget
from ...benchmarks.runs.run import Run
from ...benchmarks.settings import NONE
from ...core.canonical import compute_identity
from ...core.errors import BadRun, UnknownName
from ..recipe import BenchmarkOverride, Recipe, Setting, filter_budget_settings, find_recipe
from ..running.plan import Plan, compute_code_digest
from ..running.recorded_scores import RecordedScore, read_recorded_scores
from ..running.resources import prepare_data
from ..running.results import find_recorded_run, get_results_home, list_results
from ..running.search import draw_settings
from ..running.sweep import run_all
from .measured import Evidence


def override_settings(recipe: Recipe, on: str, settings: dict[str, Setting]) -> Recipe:
    """A recipe with other settings on one benchmark, which override all of its own."""
    if not settings:
        return recipe
    if recipe.estimator:
        return recipe.model_copy(update={"settings": recipe.settings | settings})
    override = recipe.on.get(on, BenchmarkOverride())
    own = filter_budget_settings(
        override, lambda short: {name: value for name, value in short.items() if name not in settings}
    )
    changed = override.model_copy(update={"settings": override.settings | settings} | own)
    return recipe.model_copy(update={"on": recipe.on | {on: changed}})


def make_run_plan(run: TrainedBaseline, out: Path, quick: bool, seeds: int | None, device: str) -> Plan:
    """Make the plan of one run of a claim; opens no data."""
    benchmark = find_benchmark(run.on)
    recipe = override_settings(find_recipe(run.recipe), run.on, run.settings)
    steps = (run.quick.steps or run.steps) if quick else run.steps
    count = seeds or (run.quick.seeds if quick else run.seeds)
    budget = Budget("quick" if quick else run.budget, steps, device)
    tried = (run.quick.search or run.search) if quick else run.search
    settings = draw_settings(run.recipe, run.on, tried, recipe.for_budget(budget.name)) if tried else NONE
    numbers = list_seeds(count, benchmark, budget.name)
    return Plan(recipe, benchmark, budget, numbers, out, settings, run.selection)


def make_run_plans(claim: Claim, out: Path, quick: bool, seeds: int | None, device: str) -> dict[str, Plan]:
    """Make the plans of all runs that are trained for a claim, by name. A run's folder has a digest of its plan in its
    name: if the claim, the number of seeds or Farshift's code changes, training begins anew in another folder."""
    left_out = claim.quick.skip if quick else []
    plans_by_run = {}
    for name, run in claim.runs.items():
        if not run.recorded and name not in left_out:
            plan = make_run_plan(run, out / name, quick, seeds, device)
            plans_by_run[name] = replace(plan, out=out / f"{name}-{digest_plan(plan)}")
    return plans_by_run


def digest_plan(plan: Plan) -> str:
    """Eight hexadecimal digits that distinguish plans of the same name."""
    spent = [plan.budget.name, plan.budget.steps, plan.budget.device]
    identity = plan.benchmark.identity(plan.budget.name, plan.budget.steps, plan.selection)
    settings = {name: dict(values) for name, values in plan.settings.items()}
    return compute_identity([identity, compute_code_digest(plan.recipe), settings, plan.seeds, spent])[:8]


def train_runs(claim: Claim, out: Path, quick: bool, seeds: int | None, device: str) -> Evidence:
    """Train the runs of a claim one after the other, each in its folder under `out`; finished runs there are used."""
    runs: dict[str, Run] = {}
    for name, plan in make_run_plans(claim, out, quick, seeds, device).items():
        prepare_data(plan.benchmark)
        done, failures = run_all([plan], "local")
        if failures:
            raise failures[0].error
        runs[name] = done[0]
    return _add_recorded(claim, runs, scores_only=quick)


def load_recorded_runs(claim: Claim, home: Path = HOME) -> Evidence:
    """The stored predictions of a claim's reproduction; `BadRun` if a run has none."""
    runs = {}
    for name, run in claim.runs.items():
        if run.recorded:
            continue
        recorded_results = list_results(home / claim.name / name)
        if not recorded_results:
            raise BadRun(f"claim {claim.name}: no predictions of the run {name} are stored: leave --rescore out")
        runs[name] = find_recorded_run(*recorded_results[0], home / claim.name / name)
    return _add_recorded(claim, runs, scores_only=False)


def _add_recorded(claim: Claim, runs: dict[str, Run], scores_only: bool) -> Evidence:
    """Add the recorded results that a claim names. scores_only: use their stored scores where these are enough, so that
    the data of their benchmarks are not needed."""
    scores: dict[str, RecordedScore] = {}
    for name, run in claim.runs.items():
        if not run.recorded:
            continue
        known = read_recorded_scores(run.on, get_results_home(run.budget))
        if run.recipe not in known:
            raise UnknownName(f"recorded baseline ({run.budget} budget) on {run.on}", run.recipe, known)
        if scores_only and not _needs_predictions(claim, name):
            scores[name] = known[run.recipe]
        else:
            runs[name] = find_recorded_run(run.on, run.recipe, budget=run.budget)
    return Evidence(claim, runs, scores)


def _needs_predictions(claim: Claim, run: str) -> bool:
    """Whether a quantity is a score of the run that recorded results do not have."""
    scores = [score for score in claim.quantities.values() if isinstance(score, Score) and score.run == run]
    return any(score.view not in ("id", "ood", "gap") or score.metric or score.group or score.rule for score in scores)
