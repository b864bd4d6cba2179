"""`farshift reproduce`: published claims, checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import FarshiftError
from ..core.text import format_count
from .options import OptionalCount, command
from .output import emit_json, exit_if, print_line, print_note, print_table
from .progress import show_progress

if TYPE_CHECKING:
    from ..benchmarks.claims.claim import Claim
    from ..benchmarks.claims.outcome import Outcome

app = typer.Typer()


@command(app)
def reproduce(
    name: str | None = None,
    list_: bool = False,
    all_: bool = False,
    quick: bool = False,
    rescore: bool = False,
    budget: str = "30m",
    seeds: OptionalCount = None,
    device: str = "cpu",
    out: Path = Path("farshift-claims"),
    kind: str | None = None,
    keep: Path | None = None,
    json: bool = False,
) -> None:
    """Check a published claim: run its experiment, and apply its decision rule, which was fixed in advance.

    Of several claims one that cannot be run is reported and skipped, and none is started after the time budget. Exit
    code 1 if a claim is not reproduced (with --quick: if the effect does not have the claimed direction).

    name CLAIM: Claim name, as printed by --list; with --list, words to search for (a title, an arXiv number).
    --list: List the claims with their recorded verdicts.
    --all: Check as many claims as fit into the time --budget, cheapest first.
    --quick: Check only the direction of the effect, with short training (under a minute per claim).
    --rescore: Apply the decision rule to the recorded predictions, without training.
    --budget TIME: With --all: time budget, such as 90s, 30m or 2h.
    --seeds: Number of seeds of each run (default: the claim's).
    --out DIR: Output folder for the runs; unfinished runs are resumed.
    --keep DIR: Folder in which to record the outcomes and their predictions (default: not recorded).
    """
    if list_ + all_ + (name is not None and not list_) != 1:
        raise FarshiftError("reproduce: name a claim, or give one of --list and --all")
    if rescore and (quick or seeds or keep):
        raise FarshiftError("reproduce: --rescore uses the recorded predictions: leave out --quick, --seeds and --keep")
    if keep is not None and quick:
        raise FarshiftError("reproduce: --keep records full runs: leave out --quick")
    if list_:
        return _print_claims(kind or "", name or "", json)
    from ..baselines.reproduce.reproduce import record_outcome, rescore_claim
    from ..baselines.reproduce.reproduce import reproduce_claim as go
    from ..benchmarks.claims.claim import load_claim
    from ..benchmarks.claims.outcome import get_stated_verdict
    from ..core.clock import Stopwatch

    minutes = _parse_minutes(budget) if all_ else None
    chosen = [load_claim(str(name))] if minutes is None else _choose_fitting_claims(kind or "", quick, minutes, device)
    by_name = {item.name: item for item in chosen}
    outcomes: list[Outcome] = []
    failed = []
    watch = Stopwatch()
    with show_progress():
        for item in chosen:
            if minutes is not None and watch.seconds() > 60 * minutes:
                failed.append(f"{item.name}: the time budget of {minutes:g} min is used up")
                continue
            folder = out / (f"{item.name}-quick" if quick else item.name)
            try:
                if rescore:
                    outcome = rescore_claim(item)
                else:
                    outcome, evidence = go(item, folder, quick=quick, seeds=seeds, device=device)
                    if keep is not None:
                        short, _ = go(item, out / f"{item.name}-quick", quick=True, device=device)
                        record_outcome(outcome, evidence, short, keep)
            except FarshiftError as error:
                if minutes is None:
                    raise
                failed.append(f"{item.name}: {error}")
                continue
            outcomes.append(outcome)
    if json:
        records = [outcome.to_dict() for outcome in outcomes]
        emit_json(records[0] if minutes is None else records)
    else:
        for outcome in outcomes:
            _print_outcome(by_name[outcome.claim], outcome)
    for problem in failed:
        print_note(f"not run: {problem}")
    exit_if(
        any(
            not item.holds
            if item.form == "quick"
            else get_stated_verdict(by_name[item.claim], item) == "not reproduced"
            for item in outcomes
        )
    )


def _print_claims(kind: str, search: str, json: bool) -> None:
    from ..benchmarks.claims.outcome import format_cost, list_claims

    entries = list_claims(kind, search)
    if json:
        return emit_json([entry.to_dict() for entry in entries])
    rows = [
        [entry.claim.name, entry.claim.kind, entry.verdict, format_cost(entry.claim), entry.claim.title]
        for entry in entries
    ]
    print_table(
        "", ["claim", "kind", "verdict", "CPU time (one core)", "title"], rows, format_count(len(entries), "claim")
    )


def _print_outcome(claim: Claim, outcome: Outcome) -> None:
    from ..benchmarks.claims.outcome import format_measurement, get_stated_verdict

    print_line(f"{claim.name}: {claim.title}")
    for reference in claim.published.values():
        parts = [reference.says] if reference.says else []
        parts += [] if reference.value is None else [str(reference.value)]
        print_line(f"  published: {', '.join(parts)} ({reference.where}; {reference.mark})")
    for name, value in outcome.quantities.items():
        interval = f" ({value.interval})" if value.interval else ""
        print_line(f"  ours: {name} {format_measurement(value)}{interval}")
    for premise in outcome.premises:
        print_line(f"  premise: {premise.rule}: {premise.verdict}: {premise.reason}")
    for rule in outcome.rules:
        print_line(f"  rule: {rule.rule}: {rule.verdict}: {rule.reason}")
    if outcome.form == "quick":
        print_line(f"  quick form: the direction {'holds' if outcome.holds else 'does not hold'} (no verdict)")
    else:
        print_line(f"  {get_stated_verdict(claim, outcome)}: {outcome.reason}")
    for name, item in claim.setting.items():
        print_line(f"  setting: {name.replace('_', ' ')}: {item.ours} (paper: {item.paper})")


def _parse_minutes(text: str) -> float:

    if not (match := re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text)):
        raise FarshiftError(f"--budget {text!r}: write a number and s, m or h, such as 30m")
    return float(match[1]) * {"s": 1 / 60, "m": 1.0, "h": 60.0}[match[2]]


_QUICK_MINUTES = 1.0


def _choose_fitting_claims(kind: str, quick: bool, minutes: float, device: str) -> list[Claim]:
    """The claims that together fit into so many minutes, cheapest first; the others are reported. A claim without a
    measured cost on a GPU is counted with its CPU time on one core, which is reported too."""
    from ..benchmarks.claims.claim import load_claims

    def cost(candidate: Claim) -> float:
        if quick:
            return _QUICK_MINUTES
        known = candidate.cost.cpu_minutes if device == "cpu" else candidate.cost.gpu_minutes
        return candidate.cost.cpu_minutes if known is None else known

    candidates = [candidate for candidate in load_claims().values() if kind in ("", candidate.kind)]
    chosen: list[Any] = []
    if (
        device != "cpu"
        and not quick
        and (unknown := sum(candidate.cost.gpu_minutes is None for candidate in candidates))
    ):
        count = format_count(unknown, "claim")
        print_note(f"{count}: no measured cost on {device}; its CPU time on one core is used")
    for candidate in sorted(candidates, key=lambda candidate: (cost(candidate), candidate.name)):
        takes = cost(candidate)
        if takes > minutes:
            print_note(f"skipped: {candidate.name} takes {takes:g} min, and {minutes:g} min are left")
        else:
            minutes -= takes
            chosen.append(candidate)
    return chosen
