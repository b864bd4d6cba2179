"""docs/claims/: an index of the published claims with their verdicts, and a page a paper."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from farshift.benchmarks.claims.claim import (
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
    read_claim,
)
from farshift.benchmarks.claims.outcome import (
    NOT_RUN,
    ClaimEntry,
    Outcome,
    format_cost,
    format_measurement,
    read_recorded_outcome,
)
from farshift.core.plugins import PACKAGE
from markdown_text import fill_prose, format_table, join_page

INTRODUCTION = """
Which published findings about generalisation can be reproduced in small settings? A claim is one file of
`baselines/claims/`: the finding of the paper and where it is stated, the experiment, and the decision rule for its
result.

- `farshift reproduce NAME` runs the experiment of a claim.
- `--quick` runs a short version of it, in under a minute.
- `--rescore` scores the stored predictions of the recorded run again.
- `--all --budget 30m` runs all claims that fit into the time budget.

Verdicts:

- *reproduced*: the confidence intervals of all measured quantities satisfy the rules.
- *not reproduced*: an interval lies entirely outside a rule, in the paper's setting.
- *another setting*: the same, but our setting differs from the paper's in a way that may explain it, such as the number
  of steps; the page of the claim lists the differences. It does not contradict the paper.
- *inconclusive*: an interval contains values on both sides of a rule; or a premise of the claim is not met, such as
  that the model has learned the training distribution.
- *comparison*: the published number was not verified in its source, so the result is compared with it but not judged.
- *not yet run*: the rules are written, but the experiment has not been run.

After each published result, its source is given with *seen* if we verified it there, or *from memory* if we did not.
Brackets are 95 % confidence intervals over test rows and, for trained models, training seeds; numbers without brackets
are exact. ID and OOD scores are those on in-distribution and out-of-distribution test rows. With wrong training labels,
MEMORISED is the fraction of wrongly labelled training rows for which the model predicts the wrong label, RESTORED the
fraction for which it predicts the true one.

The settings are small: experiments that two CPU cores can train in minutes. A verdict applies to the setting that the
page describes, not to the paper. Rules of claims about recorded baselines were written after these were recorded. Rules
of claims that train models were written before the runs that decide them; what was known from earlier runs is stated in
the notes. The history of the repository shows the order, except for claims whose rules were first committed together
with their outcome; their pages say so. Many premises were added on 26 November 2026, when the outcomes were known: they
require ID scores at least half way from guessing to the best (.9 where the task can be learned completely), and the
pages show the outcome without them. To add one: [a claim of your own](../own-claims.md).
"""


def list_shipped_claims() -> list[ClaimEntry]:
    """The claims that ship with the package, sorted by kind and name; `FARSHIFT_PATH` is ignored."""
    claims = map(read_claim, (PACKAGE / CLAIMS_FOLDER).glob("*.toml"))
    entries = [ClaimEntry(claim, read_recorded_outcome(claim)) for claim in claims]
    return sorted(entries, key=lambda entry: (entry.claim.kind, entry.claim.name))


_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


def build_claim_pages() -> dict[str, str]:
    """The index, and the page of each paper by its file name."""
    entries = list_shipped_claims()
    names = name_papers(entry.claim.citation for entry in entries)
    by_page: dict[str, list[ClaimEntry]] = {}
    for entry in entries:
        by_page.setdefault(names[entry.claim.citation], []).append(entry)
    counts = Counter(entry.verdict for entry in entries)
    summary = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items(), key=lambda item: -item[1]))
    index = join_page(
        "# Published claims",
        INTRODUCTION,
        f"{len(entries)} claims: {summary}.",
        format_claim_table(entries, names),
    )
    return {"index.md": index} | {f"{name}.md": _render_paper(group) for name, group in sorted(by_page.items())}


def format_claim_table(entries: Sequence[ClaimEntry], names: Mapping[str, str], folder: str = "") -> str:
    """The claims with links to their pages. names: the page of each citation; folder: a prefix of the links."""
    rows = [
        (
            f"[{claim.name}]({folder}{names[claim.citation]}.md#{claim.name})",
            claim.kind,
            claim.title,
            entry.verdict,
            f"{claim.cost.cpu_minutes:g} min",
        )
        for entry in entries
        for claim in (entry.claim,)
    ]
    return format_table(("claim", "kind of shift", "finding", "verdict", "CPU time (one core)"), rows)


def name_papers(citations: Iterable[str]) -> dict[str, str]:
    """The name of the page of each citation: first author and year, and the arXiv number where two papers share these.

    Citations with the same first arXiv number are of the same paper."""
    by_paper: dict[str, list[str]] = {}
    for citation in sorted(set(citations)):
        number = _ARXIV.search(citation)
        by_paper.setdefault(number[1] if number else citation, []).append(citation)
    short = {paper: _format_author_and_year(group[0]) for paper, group in by_paper.items()}
    shared = {name for name, count in Counter(short.values()).items() if count > 1}
    names = {}
    for paper, group in by_paper.items():
        number = f"-{paper.replace('.', '-')}" if short[paper] in shared else ""
        names |= {citation: f"{short[paper]}{number}" for citation in group}
    return names


def _format_author_and_year(citation: str) -> str:
    """`lake-2018` of "Lake and Baroni, Generalization without systematicity, ICML 2018 (arXiv:1711.00350)"."""
    plain = unicodedata.normalize("NFKD", citation).encode("ascii", "ignore").decode()
    author = re.match(r"[A-Za-z-]+", plain)
    year = re.search(r"\b(?:19|20)\d\d\b", plain)
    if author is None or year is None:
        raise ValueError(f"a citation begins with an author and has a year: {citation!r}")
    return f"{author[0].lower()}-{year[0]}"


def _render_paper(entries: Sequence[ClaimEntry]) -> str:
    citations = list(dict.fromkeys(entry.claim.citation for entry in entries))
    return join_page(
        f"# {citations[0]}",
        *(
            render_claim(entry, "" if entry.claim.citation == citations[0] else entry.claim.citation)
            for entry in entries
        ),
        "[All claims](index.md)",
    )


def render_claim(entry: ClaimEntry, citation: str) -> str:
    """A claim's section. citation: printed where it is not the page's title."""
    claim, outcome = entry.claim, entry.outcome
    published = "\n".join(f"- Published: {format_published(result)}" for result in claim.published.values())
    if outcome is None:
        verdict, measured = f"**{NOT_RUN.capitalize()}.** Estimated time on one CPU core: {format_cost(claim)}.", ""
    else:
        verdict = f"**{entry.verdict.capitalize()}.** {outcome.reason}. {describe_evidence(claim, outcome)}"
        rows = [
            (f"`{name}`", _describe_quantity(claim, name), format_measurement(value))
            for name, value in outcome.quantities.items()
        ]
        measured = format_table(("quantity", "definition", "result"), rows)
    return join_page(
        f"## {claim.name}",
        f"{claim.title} ({claim.kind} shift).{f' {citation}.' if citation else ''}",
        published,
        measured,
        verdict,
        format_table(
            ("setting", "ours", "paper"),
            [(name.replace("_", " "), str(item.ours), str(item.paper)) for name, item in claim.setting.items()],
        )
        if claim.setting
        else "",
        fill_prose(claim.notes),
        *describe_history(claim),
    )


def _describe_quantity(claim: Claim, name: str) -> str:
    return describe_quantity(claim, claim.quantities[name]) if name in claim.quantities else ""


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
    if isinstance(quantity, RankCorrelation):
        left, right = (f"the {side.view.upper()} score on {side.on}" for side in (quantity.left, quantity.right))
        return f"Kendall's tau-b between {left} and {right}"
    if isinstance(quantity, DiagnosticCorrelation):
        return f"Kendall's tau-b between {quantity.diagnostic} and the OOD score on {quantity.on}"
    assert isinstance(quantity, Fact), "the claim's schema says so"
    given = ", ".join(str(value) for value in quantity.arguments.values())
    return f"{quantity.measure.replace('_', ' ')} of {quantity.split}{f' ({given})' if given else ''}"


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
