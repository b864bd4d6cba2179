"""Published claims: what papers report, the result of rerunning it here, and the verdict.

Claims are part of the package and not of the board, so the page is the same on every board of a version.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ...benchmarks.claims.claim import list_judged_quantities
from ...benchmarks.claims.listing import (
    NOT_RUN,
    ClaimEntry,
    describe_evidence,
    describe_quantity,
    format_cost,
    format_published,
    list_shipped_claims,
)
from ...benchmarks.claims.measurement import Measurement, format_measurement
from ...benchmarks.claims.outcome import Outcome
from .page import Page

if TYPE_CHECKING:
    from .site import Site

MEANS = {
    "reproduced": "the whole interval satisfies the claim's rule",
    "not reproduced": "the whole interval contradicts the claim's rule",
    "inconclusive": "the interval includes both outcomes, or the setting differs from the claim's",
    "comparison": "the published number was not verified in its source, so it is compared but not judged",
    NOT_RUN: "the rule is written, but the experiment has not been run",
}
"""The verdicts in order, with their meanings."""

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_SHORT = 3
"""Maximum numbers of published and of measured values in a table row; the claim's section has all."""


def list_pages(site: Site) -> Iterator[Page]:
    """Yield the page, which is the same on every board."""
    yield Page("claims.html", "claims.html", _make_context)


@cache
def _make_context() -> dict[str, Any]:
    entries = list_shipped_claims()
    counts = Counter(entry.verdict for entry in entries)
    kinds = dict.fromkeys(entry.claim.kind for entry in entries)
    return {
        "total": len(entries),
        "verdicts": [
            (verdict, counts[verdict], explanation) for verdict, explanation in MEANS.items() if counts[verdict]
        ],
        "kinds": [
            (
                "any kind" if kind == "any" else kind,
                [_describe_claim(entry) for entry in entries if entry.claim.kind == kind],
            )
            for kind in kinds
        ],
    }


def _describe_claim(entry: ClaimEntry) -> dict[str, Any]:
    claim, outcome = entry.claim, entry.outcome
    decisive = dict.fromkeys(name for rule in claim.rules for name in list_judged_quantities(rule))
    quantities = {} if outcome is None else outcome.quantities
    published = [format_published(each) for each in claim.published.values()]
    ours = [(name, format_measurement(quantities[name])) for name in decisive if name in quantities]
    paper = _ARXIV.search(claim.citation)
    return {
        "name": claim.name,
        "title": claim.title,
        "citation": claim.citation,
        "paper": "" if paper is None else f"https://arxiv.org/abs/{paper[1]}",
        "verdict": entry.verdict,
        "remark": "" if outcome is None else _make_remark(outcome),
        "published": published,
        "briefly": [each.says or _format_number(each.value) for each in claim.published.values()][:_SHORT],
        "more_published": max(0, len(published) - _SHORT),
        "ours": ours[:_SHORT],
        "more_ours": max(0, len(ours) - _SHORT),
        "quantities": [
            (
                name,
                describe_quantity(claim, quantity),
                format_measurement(quantities[name]),
                _describe_interval(quantities[name]),
            )
            for name, quantity in claim.quantities.items()
            if name in quantities
        ],
        "judged": []
        if outcome is None
        else [(True, each) for each in outcome.premises] + [(False, each) for each in outcome.rules],
        "benchmarks": sorted({run.on for run in claim.runs.values()}),
        "rests": "" if outcome is None else describe_evidence(claim, outcome),
        "cost": format_cost(claim),
        "notes": claim.notes,
    }


def _make_remark(outcome: Outcome) -> str:
    """Return why there is no verdict; empty if the listed rules already give the reason."""
    reason = outcome.reason
    unmet = any(premise.verdict != "reproduced" for premise in outcome.premises)
    return reason[:1].upper() + reason[1:] if unmet or outcome.verdict == "comparison" else ""


def _format_number(value: float | str | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _describe_interval(measurement: Measurement) -> str:
    """Return the source of variation that an interval covers; empty if there is no value."""
    return "" if measurement.why else measurement.interval
