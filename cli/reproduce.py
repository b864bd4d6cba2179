"""`farshift reproduce`: published claims, checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ..core.listings.plural import counted
from .finding import OfKind
from .runs import Device, Seeds
from .terminal import Json, block, emit_json, exit_if, line, note, table, watched

if TYPE_CHECKING:
    from ..benchmarks.claims.claim import Claim
    from ..benchmarks.claims.outcome import Outcome

app = typer.Typer()


@app.command()
def reproduce(
    name: Annotated[Optional[str], typer.Argument(metavar="[CLAIM]", help="Its name: --list has them.")] = None,  # noqa: UP045
    listing: Annotated[bool, typer.Option("--list", help="List the claims with their recorded verdicts.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Every claim that fits --budget, cheapest first.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The short form: under a minute, the direction only.")] = False,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Train nothing: judge the predictions that are kept of the recorded run.")
    ] = False,
    budget: Annotated[str, typer.Option("--budget", metavar="T", help="With --all: 90s, 30m, 2h.")] = "30m",
    seeds: Seeds = None,
    device: Device = "cpu",
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the runs go; one that is unfinished there goes on.")
    ] = Path("farshift-claims"),
    kind: OfKind = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="With --list: the page docs/claims.md.")] = False,
    keep: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--keep", metavar="DIR", help="Store outcomes and their predictions as recorded ones."),
    ] = None,
    json: Json = False,
) -> None:
    """Check a published claim: run its experiment, and judge it by the rule that the claim was written with.

    Exit code 1 where a claim is not reproduced (with --quick: where its direction does not hold)."""
    from ..benchmarks.claims.claim import claim
    from ..core.errors import FarshiftError

    if (name is not None) + listing + every != 1:
        raise FarshiftError("reproduce: name a claim, or give one of --list and --all")
    if markdown and (json or not listing):
        raise FarshiftError("reproduce: --markdown goes with --list, and without --json")
    if rescore and (quick or seeds or keep):
        raise FarshiftError("reproduce: --rescore judges what is kept: leave --quick, --seeds and --keep out")
    if keep is not None and quick:
        raise FarshiftError("reproduce: --keep stores claims in full: leave --quick out")
    if listing:
        return _list(kind or "", markdown, json)
    if every:
        minutes = _minutes(budget)
        chosen = _fitting(kind or "", quick, minutes, device)
    else:
        assert name is not None
        chosen, minutes = [claim(name)], None
    _check(chosen, out, quick, rescore, seeds, device, keep, json, minutes)


def _list(kind: str, markdown: bool, json: bool) -> None:
    from ..benchmarks.claims.listing import cost_in_words, listed
    from ..benchmarks.claims.listing import markdown as page

    found = listed(kind)
    if json:
        return emit_json([one.to_dict() for one in found])
    if markdown:
        return block(page(found).rstrip())
    rows = [[one.claim.name, one.claim.kind, one.verdict, cost_in_words(one.claim), one.claim.title] for one in found]
    table("", ["claim", "kind", "verdict", "one core", "what is claimed"], rows, counted(len(found), "claim"))


def _check(
    chosen: list[Claim],
    out: Path,
    quick: bool,
    rescore: bool,
    seeds: int | None,
    device: str,
    home: Path | None,
    json: bool,
    minutes: float | None,
) -> None:
    """Check claims one after the other. minutes: of several, by the clock; of them one that cannot be run is told and
    left, and none is begun after that time."""
    from ..baselines.reproduce.reproduce import keep, rescored
    from ..baselines.reproduce.reproduce import reproduce as go
    from ..core.clock import Stopwatch
    from ..core.errors import FarshiftError

    found: list[Outcome] = []
    failed = []
    several, watch = minutes is not None, Stopwatch()
    with watched():
        for one in chosen:
            if minutes is not None and watch.seconds() > 60 * minutes:
                failed.append(f"{one.name}: the {minutes:g} min are over")
                continue
            folder = out / (f"{one.name}-quick" if quick else one.name)
            try:
                if rescore:
                    outcome = rescored(one)
                else:
                    outcome, evidence = go(one, folder, quick=quick, seeds=seeds, device=device)
                    if home is not None:
                        short, _ = go(one, out / f"{one.name}-quick", quick=True, device=device)
                        keep(outcome, evidence, short, home)
            except FarshiftError as error:
                if not several:
                    raise
                failed.append(f"{one.name}: {error}")
                continue
            found.append(outcome)
    if json:
        records = [outcome.to_dict() for outcome in found]
        emit_json(records if several else records[0])
    else:
        claims = {one.name: one for one in chosen}
        for outcome in found:
            _print(claims[outcome.claim], outcome)
    for problem in failed:
        note(f"not run: {problem}")
    exit_if(any(not one.holds if one.form == "quick" else one.verdict == "not reproduced" for one in found))


def _print(claim: Claim, found: Outcome) -> None:
    from ..benchmarks.claims.measured import shown

    line(f"{claim.name}: {claim.title}")
    for said in claim.published.values():
        told = [said.says] if said.says else []
        told += [] if said.value is None else [str(said.value)]
        line(f"  published: {', '.join(told)} ({said.where}; {said.mark})")
    for name, value in found.quantities.items():
        interval = f" ({value.interval})" if value.interval else ""
        line(f"  ours: {name} {shown(value)}{interval}")
    for premise in found.premises:
        line(f"  premise: {premise.rule}: {premise.verdict}: {premise.reason}")
    for rule in found.rules:
        line(f"  rule: {rule.rule}: {rule.verdict}: {rule.reason}")
    if found.form == "quick":
        line(f"  quick form: the direction {'holds' if found.holds else 'does not hold'}; it gives no verdict")
    else:
        line(f"  {found.verdict}: {found.reason}")


def _minutes(text: str) -> float:
    from ..core.errors import FarshiftError

    if not (match := re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text)):
        raise FarshiftError(f"--budget {text!r}: write a number and s, m or h, such as 30m")
    return float(match[1]) * {"s": 1 / 60, "m": 1.0, "h": 60.0}[match[2]]


_QUICK_MINUTES = 1.0


def _fitting(kind: str, quick: bool, minutes: float, device: str) -> list[Claim]:
    """The claims that fit into so many minutes together, cheapest first; what is left out is told. Where nobody
    measured a claim's cost on a GPU it is counted as what a core takes, and that is told too."""
    from ..benchmarks.claims.claim import claims

    def cost(one: Claim) -> float:
        if quick:
            return _QUICK_MINUTES
        known = one.cost.cpu_minutes if device == "cpu" else one.cost.gpu_minutes
        return one.cost.cpu_minutes if known is None else known

    found = [one for one in claims().values() if kind in ("", one.kind)]
    chosen: list[Any] = []
    if device != "cpu" and not quick and (unknown := sum(one.cost.gpu_minutes is None for one in found)):
        told = counted(unknown, "claim")
        note(f"{told}: cost on {device} was never measured: each is counted as the minutes of one core")
    for one in sorted(found, key=lambda one: (cost(one), one.name)):
        takes = cost(one)
        if takes > minutes:
            note(f"left out: {one.name}, which takes {takes:g} min, and {minutes:g} are left")
        else:
            minutes -= takes
            chosen.append(one)
    return chosen
