"""Every claim with its recorded verdict: as rows, and as the page docs/claims.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...core.plugins import PACKAGE
from .claim import (
    PLACE,
    Best,
    Claim,
    DiagnosticCorrelation,
    Difference,
    Fact,
    Published,
    Quantity,
    RankCorrelation,
    Recovered,
    Score,
    Slope,
    claims,
    read,
)
from .measured import shown
from .outcome import Outcome, recorded_outcome

NOT_RUN = "not yet run"


@dataclass(frozen=True)
class Listed:
    """A claim and what is recorded of it."""

    claim: Claim
    outcome: Outcome | None

    @property
    def verdict(self) -> str:
        return NOT_RUN if self.outcome is None else self.outcome.verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        cost = self.claim.cost
        found = self.outcome
        return {
            "name": self.claim.name,
            "kind": self.claim.kind,
            "title": self.claim.title,
            "verdict": self.verdict,
            "reason": "" if found is None else found.reason,
            "mark": self.claim.mark,
            "citation": self.claim.citation,
            "cpu_minutes": cost.cpu_minutes,
            "gpu_minutes": cost.gpu_minutes,
            "date": None if found is None else found.date,
        }


def listed(kind: str = "") -> list[Listed]:
    """Every claim, or those of a kind, sorted by kind and name."""
    found = [Listed(one, recorded_outcome(one)) for one in claims().values() if kind in ("", one.kind)]
    return sorted(found, key=lambda one: (one.claim.kind, one.claim.name))


def shipped() -> list[Listed]:
    """The claims that come with the package, sorted by kind and name: on every machine the same, whatever
    `FARSHIFT_PATH` adds."""
    found = [Listed(one, recorded_outcome(one)) for one in map(read, (PACKAGE / PLACE).glob("*.toml"))]
    return sorted(found, key=lambda one: (one.claim.kind, one.claim.name))


def meaning(claim: Claim, quantity: Quantity) -> str:
    """What a quantity of a claim is, in words."""
    if isinstance(quantity, Score):
        run = claim.runs[quantity.run]
        what = "gap" if quantity.view == "gap" else f"{quantity.view.upper()} score"
        by = f" by {quantity.metric}" if quantity.metric else ""
        group = f", rows of {quantity.group} alone" if quantity.group else ""
        tried = f", {run.search} settings tried" if run.search else ""
        rule = quantity.rule or run.selection or ""
        chosen = f", chosen by {rule}" if run.search and rule else ""
        return f"{what}{by} of {run.recipe} on {run.on}{group}{tried}{chosen}"
    if isinstance(quantity, Difference):
        return f"{quantity.left} minus {quantity.right}"
    if isinstance(quantity, Best):
        return f"the best of {', '.join(quantity.scores)} for each seed, chosen by the labels of these rows"
    if isinstance(quantity, Recovered):
        return f"share of the way from {quantity.floor} to {quantity.ceiling} that {quantity.score} goes"
    if isinstance(quantity, Slope):
        return f"slope of {', '.join(quantity.scores)} along {', '.join(f'{x:g}' for x in quantity.x)}"
    if isinstance(quantity, RankCorrelation):
        left, right = (f"{side.view.upper()} on {side.on}" for side in (quantity.left, quantity.right))
        return f"Kendall's tau-b of {left} and {right}"
    if isinstance(quantity, DiagnosticCorrelation):
        return f"Kendall's tau-b of {quantity.diagnostic} and OOD on {quantity.on}"
    assert isinstance(quantity, Fact), "the claim's schema says so"
    given = ", ".join(str(value) for value in quantity.arguments.values())
    return f"{quantity.measure.replace('_', ' ')} of {quantity.split}{f' ({given})' if given else ''}"


def cost_in_words(claim: Claim) -> str:
    """Minutes of a core, and of a GPU where that is known."""
    cpu = f"{claim.cost.cpu_minutes:g} min"
    return cpu if claim.cost.gpu_minutes is None else f"{cpu} (GPU {claim.cost.gpu_minutes:g})"


_HEAD = """# Published claims

Which findings about generalisation still hold when one reruns them? Each is a file of `baselines/claims/`: what the
paper says and where, what is run, and the rule that judges it, written before the run. `farshift reproduce NAME` runs
one through the same splits, harness and trainer as everything else; `--quick` checks its direction in under a minute,
`--rescore` judges the predictions that are kept of the recorded run, `--all --budget 30m` runs what fits.

A rule holds where the whole interval lies on its side, fails where the whole interval lies on the other, and is open
where the interval has parts on both: so a claim is *reproduced*, *not reproduced* or *inconclusive*. What is published
and was not seen in a source is compared with, and gives no verdict (*comparison*). Where a premise is not met, such as
that the model has learnt the training distribution at all, a claim is inconclusive whatever its rules say. Brackets are
95 % intervals over test rows and training seeds where a model was trained; numbers without brackets are exact. A claim
that fails stays here, with our best explanation.

Settings are small: what two cores can train in minutes. A verdict is of the setting that is named, not of the paper.
What needs a GPU and has not had one is *not yet run*: its rule stands, and its notes say how its cost was estimated.
Rules of claims that train something were written before it was trained; those of claims that rest on recorded
baselines, when these had been recorded already. A claim is one file, and found by its name: see
[a claim of your own](own-claims.md).

This page is written by `farshift reproduce --list --markdown`.
"""


def table(found: Sequence[Listed], link: str = "") -> str:
    """The claims as a Markdown table. link: the page that has a section for each; by default the table's own."""
    lines = ["| claim | kind | what is claimed | verdict | one core |", "|---|---|---|---|---|"]
    lines += [
        f"| [{one.claim.name}]({link}#{one.claim.name}) | {one.claim.kind} | {one.claim.title} | {one.verdict} | "
        f"{one.claim.cost.cpu_minutes:g} min |"
        for one in found
    ]
    return "\n".join(lines) + "\n"


def markdown(found: Sequence[Listed]) -> str:
    """The page docs/claims.md."""
    counts = Counter(one.verdict for one in found)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items(), key=lambda item: -item[1]))
    return "\n".join([_HEAD, f"{len(found)} claims: {told}.\n", table(found), *map(_section, found)])


def _section(one: Listed) -> str:
    claim, found = one.claim, one.outcome
    lines = [f"## {claim.name}", "", f"{claim.title} ({claim.kind}). {claim.citation}.", ""]
    lines += [f"- Published: {published_in_words(said)}" for said in claim.published.values()]
    if found is None:
        lines.append(f"- {NOT_RUN.capitalize()}: it takes {cost_in_words(claim)}.")
    else:
        lines += [f"- {name}: {shown(value)}" for name, value in found.quantities.items()]
        lines.append(f"- **{found.verdict.capitalize()}.** {found.reason}.")
        lines.append(f"- {evidence(claim, found)}")
    if claim.notes:
        lines += ["", claim.notes]
    return "\n".join(lines) + "\n"


def published_in_words(said: Published) -> str:
    """What a paper says, where, and whether it was seen there."""
    value = "" if said.value is None else f"{said.value:g}" if isinstance(said.value, float) else str(said.value)
    return f"{said.says}{', ' if said.says and value else ''}{value} ({said.where}; {said.mark})."


def evidence(claim: Claim, found: Outcome) -> str:
    """On what an outcome rests, in words."""
    shipped = sum("recorded" in one for one in found.runs.values())
    own = len(found.runs) - shipped
    parts = [f"{own} run{'s' if own > 1 else ''} of its own"] if own else []
    parts += [f"{shipped} recorded baseline{'s' if shipped > 1 else ''}"] if shipped else []
    sorts = {quantity.sort for quantity in claim.quantities.values()}
    parts += ["the rows of the split"] if "fact" in sorts else []
    parts += ["all recorded baselines"] if sorts & {"rank_correlation", "diagnostic_correlation"} else []
    return f"Rests on {' and '.join(parts)}; {found.date[:10]}, farshift {found.environment['farshift']}."
