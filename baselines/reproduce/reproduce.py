"""Checking a claim: run what it asks for, measure its quantities, judge them by its rule."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...benchmarks.claims.claim import Claim, judged
from ...benchmarks.claims.measured import Measured
from ...benchmarks.claims.outcome import HOME, Outcome, recorded_outcome, write
from ...benchmarks.runs.run import Run
from ...core.clock import Stopwatch, now
from ...core.errors import FarshiftError
from ...core.files import file_sha256
from ...core.progress import say
from ...core.version import version
from ..running.results import digest_of, record
from .experiment import kept, trained
from .measured import Evidence
from .verdict import judge, overall


def reproduce(
    claim: Claim, out: Path, *, quick: bool = False, seeds: int | None = None, device: str = "cpu"
) -> tuple[Outcome, Evidence]:
    """Train what a claim asks for into run folders under `out` (an unfinished one goes on), and judge it.

    quick: the short form, which tells the direction only. seeds: another number of training seeds for every run.
    """
    watch = Stopwatch()
    evidence = trained(claim, out, quick, seeds, device)
    return judged_by(evidence, "quick" if quick else "full", watch), evidence


def rescored(claim: Claim, home: Path = HOME) -> Outcome:
    """Judge the predictions that are kept of a claim's reproduction. `FarshiftError` where there are none."""
    watch = Stopwatch()
    if recorded_outcome(claim, home) is None:
        raise FarshiftError(f"claim {claim.name} has no recorded outcome: leave --rescore out")
    return judged_by(kept(claim, home), "rescored", watch)


def judged_by(evidence: Evidence, form: str, watch: Stopwatch) -> Outcome:
    """The outcome of a claim by what was run."""
    claim, quick = evidence.claim, form == "quick"
    rules = claim.quick_rules() if quick else claim.rules
    premises = [] if quick else claim.premises
    needed = {name for rule in rules for name in judged(rule)}
    measured: dict[str, Measured] = {}
    for name in claim.quantities:
        if name in needed or not quick:
            say(f"{claim.name}: measuring {name}")
            measured[name] = evidence.measure(name)
    met = [one for rule in premises for one in judge(rule, measured, evidence)]
    found = [one for rule in rules for one in judge(rule, measured, evidence, quick)]
    verdict, reason = overall(met, found, claim.mark)
    return Outcome(
        claim=claim.name,
        identity=claim.identity,
        form=form,
        verdict=verdict,
        reason=reason,
        premises=tuple(met),
        rules=tuple(found),
        quantities=measured,
        runs={name: _told(evidence, name, run) for name, run in evidence.runs.items()}
        | {name: _told_recorded(claim, name) for name in evidence.kept},
        environment={"farshift": version(), "python": platform.python_version(), "machine": platform.machine()},
        date=now(),
        seconds=watch.seconds(),
    )


def _told(evidence: Evidence, name: str, run: Run) -> dict[str, Any]:
    """What an outcome says of a run: enough to find it again, and to see that it is the same."""
    if evidence.claim.runs[name].recorded:
        return _told_recorded(evidence.claim, name)
    tried: dict[str, Any] = {}
    if len(run.candidates) > 1:
        tried = {"settings": run.card.model.more.get("settings", {}), "chosen": evidence.chosen(name)}
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


def _told_recorded(claim: Claim, name: str) -> dict[str, Any]:
    run = claim.runs[name]
    return {"benchmark": run.on, "model": run.recipe, "recorded": digest_of(run.on, run.recipe)}


def keep(found: Outcome, evidence: Evidence, quick: Outcome | None = None, home: Path = HOME) -> list[Path]:
    """Store an outcome as the recorded one, with the predictions of what was trained for it; returns the files."""
    claim = evidence.claim
    if found.form != "full":
        raise FarshiftError(f"claim {claim.name}: only an outcome in full is recorded, and this one is {found.form}")
    files = [
        record(run, home / claim.name / name, several=True)
        for name, run in evidence.runs.items()
        if not claim.runs[name].recorded
    ]
    runs = {name: dict(one) for name, one in found.runs.items()}
    for name, file in zip((name for name in evidence.runs if not claim.runs[name].recorded), files, strict=True):
        runs[name]["predictions"] = file_sha256(file)
    short = {} if quick is None else {"holds": quick.holds, "seconds": quick.seconds}
    return [*files, write(replace(found, runs=runs, quick=short), home)]
