"""The page that explains the statistics, with small figures."""

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
        "Brackets are 95 % t intervals over test rows and training seeds. Related rows (of one speaker, or variants of "
        "one problem) are treated as clusters, because their errors are correlated. An entry with a single seed has an "
        "interval over rows only, which does not include the variation between seeds.",
    ),
    (
        "gap",
        "The gap",
        "ID is the score on held-out rows of the training distribution, OOD on the shifted rows. The gap, ID minus "
        "OOD, is the loss due to the shift.",
    ),
    (
        "paired",
        "Differences",
        "All entries of a table have predictions for the same rows, so differences are computed row by row. Behind the "
        "first: an entry minus the first of its table; these intervals hold for all pairs of the table simultaneously. "
        "Against the baseline: two-sided paired t tests, with p-values adjusted by Holm's method for the number of "
        "entries.",
    ),
    (
        "ranks",
        "Rank sets",
        "The order by score is not a ranking. A rank set contains the ranks that an entry may have; with 95 % "
        "simultaneous confidence all sets contain the true ranks (max-t over all pairs; Mogstad, Romano, Shaikh and "
        "Wilhelm, 2024). An entry whose set contains 1 can be first. Rank sets are computed over one entry per team "
        "that follows the protocol. Other entries are listed unranked, with their scores and the reason.",
    ),
    (
        "ties",
        "Tie groups",
        "Letters summarise all pairwise comparisons (Piepho, 2004).",
    ),
    (
        "line",
        "ID against OOD",
        "A model may have a high OOD score only because its ID score is high. The line fitted to all entries, on logit "
        "axes, separates the two effects (Taori et al., 2020; Miller et al., 2021).",
    ),
    (
        "several",
        "Several benchmarks of a kind",
        "For a kind with several benchmarks, the home page shows on how many of them a model can be first, and the "
        "mean of its normalised scores: 0 is chance, 100 the best possible score, both fixed by the task. The "
        "interval assumes that the benchmarks have independent rows and seeds. A model that lacks an entry on one "
        "of them has no mean, because the other benchmarks may be the easy ones. The small curve is the mean of its "
        "severity curves, each from the least to the most severe rows.",
    ),
)
"""The sections of the page: anchor, title and text."""

WORDS = (
    ("Severity", "how far a row is from the training set, such as its length; the benchmark's page states its unit"),
    ("Best", "the share of draws from the joint distribution of all scores in which an entry comes first"),
    ("Worst group", "the OOD group with the worst score; its interval accounts for the selection of the worst group"),
    ("Memorised", "of rows with a wrong label, the share for which the model predicts that wrong label"),
    ("Attempts", "the number of a team's entries that were scored in a table, including withdrawn ones"),
    ("Budget", "full or quick: quick entries have fewer steps and seeds, and separate tables"),
    ("Identity", "a digest of the split, the protocol and the scorer: only entries of one identity share a table"),
)


def pages(site: Site) -> Iterator[Page]:
    """Yield the page, which is the same on every board."""
    yield Page(
        "statistics.html", "statistics.html", lambda: {"parts": PARTS, "words": WORDS, "figures": make_explanations()}
    )
