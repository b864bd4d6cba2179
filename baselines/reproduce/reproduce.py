"""Check a claim: train its runs or find recorded ones, measure its quantities, and judge them by its rules."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, Final

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.claims.claim import (
    Claim,
    Equal,
    LowerBound,
    Order,
    Rule,
    Score,
    TrainedBaseline,
    UpperBound,
    Verdict,
    Within,
    list_judged_quantities,
)
from ...benchmarks.claims.outcome import (
    HOME,
    Measurement,
    Outcome,
    RuleVerdict,
    format_measurement,
    read_recorded_outcome,
    write_outcome,
)
from ...benchmarks.harness.evaluate import list_seeds
from ...benchmarks.model import Budget
from ...benchmarks.runs.run import Run
from ...benchmarks.settings import NONE
from ...core.canonical import compute_identity
from ...core.clock import Stopwatch, get_utc_now
from ...core.errors import BadRun, FarshiftError, UnknownName
from ...core.files import compute_file_sha256
from ...core.progress import log_message
from ...core.settings import get_version
from ..recipe import BenchmarkOverride, Recipe, Setting, find_recipe, map_settings
from ..running.plan import Plan, compute_code_digest
from ..running.recorded_scores import RecordedScore, read_recorded_scores
from ..running.resources import prepare_data
from ..running.results import digest_result, find_recorded_run, get_results_home, list_results, record_run
from ..running.search import draw_settings
from ..running.sweep import run_all
from .measured import Evidence


def reproduce_claim(
    claim: Claim, out: Path, *, quick: bool = False, seeds: int | None = None, device: str = "cpu"
) -> tuple[Outcome, Evidence]:
    """Train the runs of a claim in run folders under `out` (unfinished ones are resumed), and judge it.

    quick: the short form, which checks the direction only. seeds: another number of training seeds for every run.
    """
    watch = Stopwatch()
    evidence = train_runs(claim, out, quick, seeds, device)
    return judge_evidence(evidence, "quick" if quick else "full", watch), evidence


def rescore_claim(claim: Claim, home: Path = HOME) -> Outcome:
    """Judge the stored predictions of a claim's reproduction. `FarshiftError` if there are none."""
    watch = Stopwatch()
    if read_recorded_outcome(claim, home) is None:
        raise FarshiftError(f"claim {claim.name} has no recorded outcome: leave --rescore out")
    return judge_evidence(load_recorded_runs(claim, home), "rescored", watch)


def judge_evidence(evidence: Evidence, form: str, watch: Stopwatch) -> Outcome:
    """Judge a claim by its runs."""
    claim, quick = evidence.claim, form == "quick"
    rules = claim.quick_rules() if quick else claim.rules
    premises = [] if quick else claim.premises
    needed = {name for rule in rules for name in list_judged_quantities(rule)}
    measured: dict[str, Measurement] = {}
    for name in claim.quantities:
        if name in needed or not quick:
            log_message(f"{claim.name}: measuring {name}")
            measured[name] = evidence.measure(name)
    premise_results = [judgement for rule in premises for judgement in judge_rule(rule, measured, evidence)]
    rule_results = [judgement for rule in rules for judgement in judge_rule(rule, measured, evidence, quick)]
    verdict, reason = combine_verdicts(premise_results, rule_results, claim.mark)
    return Outcome(
        claim=claim.name,
        identity=claim.identity,
        form=form,
        verdict=verdict,
        reason=reason,
        premises=tuple(premise_results),
        rules=tuple(rule_results),
        quantities=measured,
        runs={name: _describe_run(evidence, name, run) for name, run in evidence.runs.items()}
        | {name: _describe_recorded_run(claim, name) for name in evidence.recorded_scores},
        environment={"farshift": get_version(), "python": platform.python_version(), "machine": platform.machine()},
        date=get_utc_now(),
        seconds=watch.seconds(),
    )


def _describe_run(evidence: Evidence, name: str, run: Run) -> dict[str, Any]:
    """The record of a run in an outcome: enough to find it again, and to check that it is the same."""
    if evidence.claim.runs[name].recorded:
        return _describe_recorded_run(evidence.claim, name)
    tried: dict[str, Any] = {}
    if len(run.candidates) > 1:
        tried = {"settings": run.card.model.extra.get("settings", {}), "chosen": evidence.chosen(name)}
    return tried | {
        "benchmark": run.benchmark,
        "model": run.model,
        "budget": run.budget,
        "steps": run.steps,
        "seeds": list(run.seeds),
        "digest": run.digest,
        "entry_identity": run.entry_identity,
        "environment": {name: run.card.environment[name] for name in sorted(run.card.environment)},
        "seconds": run.card.spent.seconds,
    }


def _describe_recorded_run(claim: Claim, name: str) -> dict[str, Any]:
    run = claim.runs[name]
    digest = digest_result(run.on, run.recipe, get_results_home(run.budget))
    return {"benchmark": run.on, "model": run.recipe, "recorded": digest}


def record_outcome(outcome: Outcome, evidence: Evidence, quick: Outcome | None = None, home: Path = HOME) -> list[Path]:
    """Store an outcome as the recorded one, with the predictions of the runs trained for it; return the files."""
    claim = evidence.claim
    if outcome.form != "full":
        raise FarshiftError(f"claim {claim.name}: only a full outcome can be recorded, and this one is {outcome.form}")
    files = [
        record_run(run, home / claim.name / name)
        for name, run in evidence.runs.items()
        if not claim.runs[name].recorded
    ]
    runs = {name: dict(entry) for name, entry in outcome.runs.items()}
    for name, file in zip((name for name in evidence.runs if not claim.runs[name].recorded), files, strict=True):
        runs[name]["predictions"] = compute_file_sha256(file)
    short = {} if quick is None else {"holds": quick.holds, "seconds": quick.seconds}
    return [*files, write_outcome(replace(outcome, runs=runs, quick=short), home)]


HOLDS: Final = "reproduced"
FAILS: Final = "not reproduced"
OPEN: Final = "inconclusive"


def judge_rule(
    rule: Rule, measured: Mapping[str, Measurement], evidence: Evidence, direction: bool = False
) -> list[RuleVerdict]:
    """Judge one rule on the measured quantities. direction: only compare the values themselves, without intervals,
    which is all that a short form can do."""
    if isinstance(rule, Order):
        return [_judge_order(rule, left, right, evidence, direction) for left, right in pairwise(rule.quantities)]
    name, value = rule.quantity, measured[rule.quantity]
    published = evidence.claim.published
    if isinstance(rule, Equal):
        expected = published[rule.published].value
        same = value.known and value.value == expected
        return [RuleVerdict(f"{name} = {expected}", HOLDS if same else FAILS, f"it is {format_measurement(value)}")]
    if isinstance(rule, Within):
        middle = published[rule.published].value
        assert isinstance(middle, int | float), "the claim's schema says so"
        bounds = Bounds(f"{name} within {middle:g} ± {rule.by:g}", middle - rule.by, middle + rule.by)
    elif isinstance(rule, LowerBound):
        bounds = Bounds(f"{name} ≥ {rule.limit:g}", rule.limit)
    elif isinstance(rule, UpperBound):
        bounds = Bounds(f"{name} ≤ {rule.limit:g}", most=rule.limit)
    else:
        bounds = Bounds(f"{name} > 0", 0.0, strict=True)
    return [bounds.judge(value, direction, "it is ")]


def _judge_order(rule: Order, left: str, right: str, evidence: Evidence, direction: bool) -> RuleVerdict:
    x, y = (evidence.claim.quantities[name] for name in (left, right))
    assert isinstance(x, Score) and isinstance(y, Score), "the claim's schema says so"
    more = f" by more than {rule.by:g}" if rule.by else ""
    bounds = Bounds(f"{left} > {right}{more}", rule.by, strict=True)
    return bounds.judge(evidence.between(x, y), direction, "the difference is ")


@dataclass(frozen=True)
class Bounds:
    """From `least` to `most`; if `strict`, without `least` itself."""

    label: str
    least: float = -inf
    most: float = inf
    strict: bool = False

    def judge(self, measured: Measurement, direction: bool, begins: str) -> RuleVerdict:
        """Whether the whole interval of a quantity is inside, or none of it; with `direction`, its value only."""
        if measured.why or isinstance(measured.value, str):
            return RuleVerdict(self.label, OPEN, measured.why or f"{measured.value} is no number")
        value = float(measured.value)
        low, high = (value, value) if direction else (measured.low, measured.high)
        reason = f"{begins}{format_measurement(measured)}"
        if (low > self.least if self.strict else low >= self.least) and high <= self.most:
            return RuleVerdict(self.label, HOLDS, reason)
        if (high <= self.least if self.strict else high < self.least) or low > self.most:
            return RuleVerdict(self.label, FAILS, reason)
        return RuleVerdict(self.label, OPEN, f"{reason}: parts of the interval are on both sides")


def combine_verdicts(premises: Sequence[RuleVerdict], rules: Sequence[RuleVerdict], mark: str) -> tuple[Verdict, str]:
    """The verdict of a claim and its reason, in one line. If a premise is not met, the setting is not the claim's,
    whatever the rules say."""
    unmet = [judgement for judgement in premises if judgement.verdict != HOLDS]
    failed = [judgement for judgement in rules if judgement.verdict == FAILS]
    unclear = [judgement for judgement in rules if judgement.verdict == OPEN]
    verdict: Verdict = OPEN if unmet else FAILS if failed else OPEN if unclear else HOLDS
    reason = "; ".join(f"{judgement.rule}: {judgement.reason}" for judgement in unmet or failed or unclear or rules)
    if unmet:
        reason = f"the premise is not met: {reason}"
    if mark == "seen":
        return verdict, reason
    return "comparison", f"what is published is from memory, so no verdict; by the rule {verdict}: {reason}"


def override_settings(recipe: Recipe, on: str, settings: dict[str, Setting]) -> Recipe:
    """A recipe with other settings on one benchmark, which override all of its own."""
    if not settings:
        return recipe
    if recipe.estimator:
        return recipe.model_copy(update={"settings": recipe.settings | settings})
    override = map_settings(
        recipe.on.get(on, BenchmarkOverride()),
        lambda given: {name: value for name, value in given.items() if name not in settings},
    )
    changed = override.model_copy(update={"settings": override.settings | settings})
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
