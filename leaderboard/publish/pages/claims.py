"""Published claims: what papers say, what came of rerunning it here, and the verdict.

They are of the package, as its benchmarks are, and not of the board: the page of a version is the same everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ....benchmarks.claims.claim import judged
from ....benchmarks.claims.listing import (
    NOT_RUN,
    Listed,
    cost_in_words,
    evidence,
    meaning,
    published_in_words,
    shipped,
)
from ....benchmarks.claims.measured import Measured, shown
from ....benchmarks.claims.outcome import Outcome
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site

MEANS = {
    "reproduced": "the whole interval lies on the claim's side of its rule",
    "not reproduced": "the whole interval lies on the other side",
    "inconclusive": "the interval has parts on both sides, or the setting was not the claim's",
    "comparison": "the published number was not seen in its source: compared with, not judged",
    NOT_RUN: "the rule is written, the experiment not run",
}
"""The verdicts, in their order, and what each says."""

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_SHORT = 3
"""So many published and own values a table's row shows; the claim's section has all."""


def pages(site: Site) -> Iterator[Page]:
    """The page; the same on every board."""
    yield Page("claims.html", "claims.html", _context)


@cache
def _context() -> dict[str, Any]:
    found = shipped()
    counts = Counter(one.verdict for one in found)
    kinds = dict.fromkeys(one.claim.kind for one in found)
    return {
        "total": len(found),
        "verdicts": [(verdict, counts[verdict], said) for verdict, said in MEANS.items() if counts[verdict]],
        "kinds": [
            ("any kind" if kind == "any" else kind, [_shown(one) for one in found if one.claim.kind == kind])
            for kind in kinds
        ],
    }


def _shown(one: Listed) -> dict[str, Any]:
    claim, outcome = one.claim, one.outcome
    decisive = dict.fromkeys(name for rule in claim.rules for name in judged(rule))
    held = {} if outcome is None else outcome.quantities
    said = [published_in_words(each) for each in claim.published.values()]
    ours = [(name, shown(held[name])) for name in decisive if name in held]
    paper = _ARXIV.search(claim.citation)
    return {
        "name": claim.name,
        "title": claim.title,
        "citation": claim.citation,
        "paper": "" if paper is None else f"https://arxiv.org/abs/{paper[1]}",
        "verdict": one.verdict,
        "remark": "" if outcome is None else _remark(outcome),
        "published": said,
        "briefly": [each.says or _number(each.value) for each in claim.published.values()][:_SHORT],
        "more_published": max(0, len(said) - _SHORT),
        "ours": ours[:_SHORT],
        "more_ours": max(0, len(ours) - _SHORT),
        "quantities": [
            (name, meaning(claim, quantity), shown(held[name]), _over(held[name]))
            for name, quantity in claim.quantities.items()
            if name in held
        ],
        "judged": []
        if outcome is None
        else [(True, each) for each in outcome.premises] + [(False, each) for each in outcome.rules],
        "benchmarks": sorted({run.on for run in claim.runs.values()}),
        "rests": "" if outcome is None else evidence(claim, outcome),
        "cost": cost_in_words(claim),
        "notes": claim.notes,
    }


def _remark(outcome: Outcome) -> str:
    """What the reason of a verdict says beyond its rules, which are listed: why there is none."""
    said = outcome.reason
    unmet = any(one.verdict != "reproduced" for one in outcome.premises)
    return said[:1].upper() + said[1:] if unmet or outcome.verdict == "comparison" else ""


def _number(value: float | str | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _over(found: Measured) -> str:
    """What an interval is over; nothing where there is no value."""
    return "" if found.why else found.interval
