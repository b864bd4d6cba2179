"""Check a claim: run what it requires, measure its quantities, and judge them by its rule."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...benchmarks.claims.claim import Claim, list_judged_quantities
from ...benchmarks.claims.outcome import HOME, Measurement, Outcome, read_recorded_outcome, write_outcome
from ...benchmarks.runs.run import Run
from ...core.clock import Stopwatch, get_utc_now
from ...core.errors import FarshiftError
from ...core.files import compute_file_sha256
from ...core.progress import log_message
from ...core.settings import get_version
from ..running.results import digest_result, get_results_home, record_run
from .experiment import load_recorded_runs, train_runs
from .measured import Evidence
from .verdict import combine_verdicts, judge_rule


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
        record_run(run, home / claim.name / name, several=True)
        for name, run in evidence.runs.items()
        if not claim.runs[name].recorded
    ]
    runs = {name: dict(entry) for name, entry in outcome.runs.items()}
    for name, file in zip((name for name in evidence.runs if not claim.runs[name].recorded), files, strict=True):
        runs[name]["predictions"] = compute_file_sha256(file)
    short = {} if quick is None else {"holds": quick.holds, "seconds": quick.seconds}
    return [*files, write_outcome(replace(outcome, runs=runs, quick=short), home)]
