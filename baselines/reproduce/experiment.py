"""The runs of a claim: plans for the harness, recorded results, or predictions kept of an earlier reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.claims.claim import Claim, Score, Trained
from ...benchmarks.claims.outcome import HOME
from ...benchmarks.harness.evaluate import seed_numbers
from ...benchmarks.model import Budget
from ...benchmarks.runs.run import Run
from ...benchmarks.settings import NONE
from ...core.canonical import identity_of
from ...core.errors import BadRun, UnknownName
from ..recipe import On, Recipe, Setting, spends
from ..recipe import recipe as find_recipe
from ..running.needs import bring
from ..running.plan import Plan, code_digest
from ..running.recorded_scores import RecordedScore, kept_scores
from ..running.results import recorded, results
from ..running.search import drawn
from ..running.sweep import run_all
from .measured import Evidence


def with_settings(made: Recipe, on: str, settings: dict[str, Setting]) -> Recipe:
    """A recipe with other settings on one benchmark, above all that it says itself."""
    if not settings:
        return made
    if made.estimator:
        return made.model_copy(update={"settings": made.settings | settings})
    there = made.on.get(on, On())
    own = spends(there, lambda short: {name: value for name, value in short.items() if name not in settings})
    changed = there.model_copy(update={"settings": there.settings | settings} | own)
    return made.model_copy(update={"on": made.on | {on: changed}})


def plan_of(run: Trained, out: Path, quick: bool, seeds: int | None, device: str) -> Plan:
    """The plan of one run of a claim; opens no data."""
    benchmark = find_benchmark(run.on)
    made = with_settings(find_recipe(run.recipe), run.on, run.settings)
    steps = (run.quick.steps or run.steps) if quick else run.steps
    count = seeds or (run.quick.seeds if quick else run.seeds)
    budget = Budget("quick" if quick else run.budget, steps, device)
    tried = (run.quick.search or run.search) if quick else run.search
    settings = drawn(run.recipe, run.on, tried, made.under(budget.name)) if tried else NONE
    numbers = seed_numbers(count, benchmark, budget.name)
    return Plan(made, benchmark, budget, numbers, out, settings, run.selection)


def plans(claim: Claim, out: Path, quick: bool, seeds: int | None, device: str) -> dict[str, Plan]:
    """The plans of all that is trained for a claim, by run. A run's folder is named by what is run, too: where the
    claim, the number of seeds or Farshift's code is another, it begins anew beside what was run before."""
    left_out = claim.quick.skip if quick else []
    found = {}
    for name, run in claim.runs.items():
        if not run.recorded and name not in left_out:
            plan = plan_of(run, out / name, quick, seeds, device)
            found[name] = replace(plan, out=out / f"{name}-{mark(plan)}")
    return found


def mark(plan: Plan) -> str:
    """Eight hexadecimal digits that tell a plan from others of the same name."""
    spent = [plan.budget.name, plan.budget.steps, plan.budget.device]
    identity = plan.benchmark.identity(plan.budget.name, plan.budget.steps, plan.selection)
    settings = {name: dict(values) for name, values in plan.settings.items()}
    return identity_of([identity, code_digest(plan.recipe), settings, plan.seeds, spent])[:8]


def trained(claim: Claim, out: Path, quick: bool, seeds: int | None, device: str) -> Evidence:
    """Train what a claim asks for, one run after the other, each in its folder under `out`; what is finished there is
    taken as it is."""
    runs: dict[str, Run] = {}
    for name, plan in plans(claim, out, quick, seeds, device).items():
        bring(plan.benchmark)
        done, failures = run_all([plan], "local")
        if failures:
            raise failures[0].error
        runs[name] = done[0]
    return _with_recorded(claim, runs, scores_only=quick)


def kept(claim: Claim, home: Path = HOME) -> Evidence:
    """The predictions that are kept of a claim's reproduction; `BadRun` where a run has none."""
    runs = {}
    for name, run in claim.runs.items():
        if run.recorded:
            continue
        there = results(home / claim.name / name)
        if not there:
            raise BadRun(f"claim {claim.name}: no predictions are kept of the run {name}: leave --rescore out")
        runs[name] = recorded(*there[0], home / claim.name / name)
    return _with_recorded(claim, runs, scores_only=False)


def _with_recorded(claim: Claim, runs: dict[str, Run], scores_only: bool) -> Evidence:
    """The evidence with the recorded results that a claim names. scores_only: their kept scores where these are
    enough, so that the data of their benchmarks are not needed."""
    scores: dict[str, RecordedScore] = {}
    for name, run in claim.runs.items():
        if not run.recorded:
            continue
        known = kept_scores(run.on)
        if run.recipe not in known:
            raise UnknownName(f"recorded baseline on {run.on}", run.recipe, known)
        if scores_only and all(map(_plain, _scores_of(claim, name))):
            scores[name] = known[run.recipe]
        else:
            runs[name] = recorded(run.on, run.recipe)
    return Evidence(claim, runs, scores)


def _scores_of(claim: Claim, run: str) -> Sequence[Score]:
    return [one for one in claim.quantities.values() if isinstance(one, Score) and one.run == run]


def _plain(score: Score) -> bool:
    """Whether a score is one that is kept of every recorded result."""
    return score.view in ("id", "ood", "gap") and not (score.metric or score.group or score.rule)
