"""What the numbers mean, with small pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..figures.explanations import make_explanations
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site

PARTS = (
    (
        "interval",
        "Intervals",
        "Brackets are 95 % t intervals over test rows and training seeds. Rows that belong together (one speaker, one "
        "problem with its variants) are counted as clusters, since they are right or wrong together. An entry with a "
        "single seed has an interval over rows only: how much another seed would change is not in it.",
    ),
    (
        "gap",
        "The gap",
        "ID is the score on held-out rows of the training distribution, OOD on the shifted rows. The gap, ID minus "
        "OOD, is what the shift costs.",
    ),
    (
        "paired",
        "Differences",
        "All entries of a table answered the same rows. So differences are taken row by row. Behind the first: an "
        "entry minus the first of its table; these intervals hold for all pairs of the table at once. Against the "
        "baseline: two-sided paired t tests, with p-values adjusted by Holm's method for the number of entries.",
    ),
    (
        "ranks",
        "Rank sets",
        "The order by score is not a ranking. A rank set holds the ranks that an entry may truly have; with 95 % "
        "confidence the sets of all entries hold their true ranks at once (max-t over all pairs; Mogstad, Romano, "
        "Shaikh and Wilhelm, 2024). Whose set begins with 1 can be first. Rank sets are over a field: one entry a "
        "team, by the protocol. Others are listed with their scores and the reason, unranked.",
    ),
    (
        "ties",
        "Tie groups",
        "Letters sum up all pairs at once (Piepho, 2004).",
    ),
    (
        "line",
        "ID against OOD",
        "A model may be good on shifted rows only because it is good altogether. The line through all entries, on "
        "logit axes, tells the two apart (Taori et al., 2020; Miller et al., 2021).",
    ),
    (
        "several",
        "Several benchmarks of a kind",
        "On the first page a kind with several benchmarks shows on how many of them a model can be first, and the mean "
        "of its normalised scores: 0 is what guessing gives, 100 the best possible, both fixed by the task. The "
        "interval takes the benchmarks as measured on rows and seeds of their own. A model that lacks one of them has "
        "no mean: the others may be the easy ones. The small curve is the mean of its severity curves, each from the "
        "least to the most severe rows.",
    ),
)
"""The parts of the page: an anchor, a title, and the text."""

WORDS = (
    ("Severity", "how far a row lies from training, such as its length; its unit stands with the benchmark"),
    ("Best", "the share of draws from the joint distribution of all scores in which an entry comes first"),
    ("Worst group", "the OOD group with the worst score; its interval knows that it was picked for being the worst"),
    ("Memorised", "of rows with a wrong label, the share on which the model repeats that wrong label"),
    ("Attempts", "how many entries of a team were scored in a table, also those that were withdrawn"),
    ("Budget", "full or quick: quick entries have fewer steps and seeds, and tables of their own"),
    ("Identity", "a digest of the split, the protocol and the scorer: only entries of one identity share a table"),
)


def pages(site: Site) -> Iterator[Page]:
    """The page; the same on every board."""
    yield Page(
        "statistics.html", "statistics.html", lambda: {"parts": PARTS, "words": WORDS, "figures": make_explanations()}
    )
