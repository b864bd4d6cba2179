"""Published claims: what papers report, the result of rerunning it here, and the verdict; a page for each claim.

Claims are part of the package and not of the board, so their pages are the same on every board of a version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from ...benchmarks.claims.claim import CLAIMS_FOLDER, list_judged_quantities
from ...benchmarks.claims.listing import (
    NOT_RUN,
    ClaimEntry,
    describe_evidence,
    describe_history,
    describe_quantity,
    format_cost,
    format_published,
    list_shipped_claims,
)
from ...benchmarks.claims.outcome import ANOTHER_SETTING, Outcome, format_measurement
from ...core.plugins import PACKAGE
from .page import Page, SiteData

MEANS = {
    "reproduced": "the whole interval satisfies the claim's rule",
    "not reproduced": "the whole interval contradicts the claim's rule, in the paper's setting",
    ANOTHER_SETTING: "the whole interval contradicts the rule, but our setting differs from the paper's as listed",
    "inconclusive": "the interval includes both outcomes, or a premise is not met",
    "comparison": "the published number was not verified in its source, so it is compared but not judged",
    NOT_RUN: "the rule is written, but the experiment has not been run",
}
"""The verdicts in order, with their meanings."""

_SHORT = 3
"""Maximum numbers of published and of measured values in a table row; the claim's page has all."""


def list_pages(site: SiteData) -> Iterator[Page]:
    """Yield the list of claims and a page for each, which are the same on every board."""
    yield Page("claims.html", "claims.html", _make_context)
    for name in sorted(file.stem for file in (PACKAGE / CLAIMS_FOLDER).glob("*.toml")):
        yield Page(f"claims/{name}.html", "claim.html", partial(_make_claim_context, name))


@cache
def _read_claims() -> dict[str, dict[str, Any]]:
    """Return the content of each claim's page by name, sorted by kind and name."""
    return {entry.claim.name: _describe_claim(entry) for entry in list_shipped_claims()}


def _make_claim_context(name: str) -> dict[str, Any]:
    return {"item": _read_claims()[name]}


def _make_context() -> dict[str, Any]:
    claims = list(_read_claims().values())
    counts = Counter(item["verdict"] for item in claims)
    kinds = Counter(item["kind"] for item in claims)
    verdicts = [(verdict, counts[verdict], explanation) for verdict, explanation in MEANS.items() if counts[verdict]]
    return {"claims": claims, "verdicts": verdicts, "counts": counts, "kinds": kinds, "short": _SHORT}


def _describe_claim(entry: ClaimEntry) -> dict[str, Any]:
    claim, outcome = entry.claim, entry.outcome
    decisive = dict.fromkeys(name for rule in claim.rules for name in list_judged_quantities(rule))
    measured = {} if outcome is None else outcome.quantities
    values = {name: format_measurement(measured[name]) for name in claim.quantities if name in measured}
    return {
        "claim": claim,
        "kind": "any kind" if claim.kind == "any" else claim.kind,
        "verdict": entry.verdict,
        "history": describe_history(claim),
        "remark": "" if outcome is None else _make_remark(outcome),
        "published": [format_published(each) for each in claim.published.values()],
        "briefly": [each.says or _format_number(each.value) for each in claim.published.values()],
        "ours": [(name, values[name]) for name in decisive if name in values],
        "quantities": [
            (name, describe_quantity(claim, claim.quantities[name]), value, measured[name])
            for name, value in values.items()
        ],
        "outcome": outcome,
        "benchmarks": sorted({run.on for run in claim.runs.values()}),
        "rests": "" if outcome is None else describe_evidence(claim, outcome),
        "cost": format_cost(claim),
    }


def _make_remark(outcome: Outcome) -> str:
    """Return why there is no verdict; empty if the listed rules already give the reason."""
    reason = outcome.reason
    unmet = any(premise.verdict != "reproduced" for premise in outcome.premises)
    return reason[:1].upper() + reason[1:] if unmet or outcome.verdict == "comparison" else ""


def _format_number(value: float | str | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
