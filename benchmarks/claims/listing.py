"""Listing of claims with their recorded verdicts, and descriptions of their contents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...core.listings import has_words
from ...core.plugins import PACKAGE
from .claim import (
    CLAIMS_FOLDER,
    BestScore,
    Claim,
    DiagnosticCorrelation,
    Difference,
    Fact,
    PublishedResult,
    Quantity,
    RankCorrelation,
    RecoveredShare,
    Score,
    Slope,
    load_claims,
    read_claim,
)
from .outcome import Outcome, get_stated_verdict, read_recorded_outcome

NOT_RUN = "not yet run"


@dataclass(frozen=True)
class ClaimEntry:
    """A claim and its recorded outcome."""

    claim: Claim
    outcome: Outcome | None

    @property
    def verdict(self) -> str:
        return NOT_RUN if self.outcome is None else get_stated_verdict(self.claim, self.outcome)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        claim, outcome = self.claim, self.outcome
        return {
            **{name: getattr(claim, name) for name in ("name", "kind", "title")},
            "verdict": self.verdict,
            "reason": "" if outcome is None else outcome.reason,
            "mark": claim.mark,
            "citation": claim.citation,
            "cpu_minutes": claim.cost.cpu_minutes,
            "gpu_minutes": claim.cost.gpu_minutes,
            "date": None if outcome is None else outcome.date,
            **claim.model_dump(mode="json", include={"setting", "earlier", "committed_with_outcome"}),
        }


def list_claims(kind: str = "", search: str = "") -> list[ClaimEntry]:
    """Return the claims of a kind (empty: all) in whose name, title, citation or published results all words of
    `search` occur, sorted by kind and name."""
    return _list_entries(
        item
        for item in load_claims().values()
        if kind in ("", item.kind)
        and has_words(
            search, item.name, item.title, item.citation, *(result.where for result in item.published.values())
        )
    )


def list_shipped_claims() -> list[ClaimEntry]:
    """Return the claims that ship with the package, sorted by kind and name; `FARSHIFT_PATH` is ignored."""
    return _list_entries(map(read_claim, (PACKAGE / CLAIMS_FOLDER).glob("*.toml")))


def _list_entries(claims: Iterable[Claim]) -> list[ClaimEntry]:
    entries = [ClaimEntry(claim, read_recorded_outcome(claim)) for claim in claims]
    return sorted(entries, key=lambda entry: (entry.claim.kind, entry.claim.name))


def describe_quantity(claim: Claim, quantity: Quantity) -> str:
    """Describe a quantity of a claim."""
    if isinstance(quantity, Score):
        run = claim.runs[quantity.run]
        what = "gap between ID and OOD score" if quantity.view == "gap" else f"{quantity.view.upper()} score"
        by = f" ({quantity.metric})" if quantity.metric else ""
        group = f", group {quantity.group} only" if quantity.group else ""
        selected = f", selected among {run.search} settings" if run.search else ""
        rule = quantity.rule or run.selection or ""
        criterion = f" by {rule}" if run.search and rule else ""
        return f"{what}{by} of {run.recipe} on {run.on}{group}{selected}{criterion}"
    if isinstance(quantity, Difference):
        return f"{quantity.left} minus {quantity.right}"
    if isinstance(quantity, BestScore):
        return f"the best of {', '.join(quantity.scores)} for each seed, selected on the scored rows"
    if isinstance(quantity, RecoveredShare):
        return f"fraction of the gap between {quantity.floor} and {quantity.ceiling} that {quantity.score} recovers"
    if isinstance(quantity, Slope):
        return f"slope of {', '.join(quantity.scores)} over x = {', '.join(f'{x:g}' for x in quantity.x)}"
    if isinstance(quantity, RankCorrelation):
        left, right = (f"the {side.view.upper()} score on {side.on}" for side in (quantity.left, quantity.right))
        return f"Kendall's tau-b between {left} and {right}"
    if isinstance(quantity, DiagnosticCorrelation):
        return f"Kendall's tau-b between {quantity.diagnostic} and the OOD score on {quantity.on}"
    assert isinstance(quantity, Fact), "the claim's schema says so"
    given = ", ".join(str(value) for value in quantity.arguments.values())
    return f"{quantity.measure.replace('_', ' ')} of {quantity.split}{f' ({given})' if given else ''}"


def format_cost(claim: Claim) -> str:
    """Format the cost in minutes of a CPU core, and of a GPU if known."""
    cpu = f"{claim.cost.cpu_minutes:g} min"
    return cpu if claim.cost.gpu_minutes is None else f"{cpu} (GPU: {claim.cost.gpu_minutes:g} min)"


def format_published(published: PublishedResult) -> str:
    """Format a published result, its source, and whether it was seen there."""
    number = published.value
    value = "" if number is None else f"{number:g}" if isinstance(number, float) else str(number)
    return f"{published.says}{', ' if published.says and value else ''}{value} ({published.where}; {published.mark})."


def describe_history(claim: Claim) -> list[str]:
    """Describe earlier outcomes of a claim, and whether the order of its rules and its outcome can be checked."""
    lines = [
        f"An earlier specification was {earlier.verdict} ({earlier.date}, commit {earlier.commit}): {earlier.reason}."
        for earlier in claim.earlier
    ]
    if claim.committed_with_outcome:
        lines.append("The rules were first committed together with the outcome: their order cannot be checked.")
    return lines


def describe_evidence(claim: Claim, outcome: Outcome) -> str:
    """Describe the evidence for an outcome."""
    shipped = sum("recorded" in run for run in outcome.runs.values())
    own = len(outcome.runs) - shipped
    parts = [f"{own} run{'s' if own > 1 else ''} for this claim"] if own else []
    parts += [f"{shipped} recorded baseline{'s' if shipped > 1 else ''}"] if shipped else []
    sorts = {quantity.sort for quantity in claim.quantities.values()}
    parts += ["the data of the split"] if "fact" in sorts else []
    parts += ["all recorded baselines"] if sorts & {"rank_correlation", "diagnostic_correlation"} else []
    return f"Based on {' and '.join(parts)}; {outcome.date[:10]}, Farshift {outcome.environment['farshift']}."
