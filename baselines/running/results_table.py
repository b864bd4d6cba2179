"""Recorded results as LaTeX tables, one for each benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.tables.latex import OVERLAP, Block, Cell, find_best_names, make_slug, render_blocks
from .recorded_scores import RecordedScore, find_undertrained

HEADS = ("ID", "OOD", "gap")


def format_latex(scores: Sequence[RecordedScore], caption: str = "", label: str = "") -> str:
    """Format a `table` environment for each benchmark of the results, which are sorted by benchmark. With several
    tables each caption and label begins with those given."""
    groups = [(name, list(members)) for name, members in groupby(scores, key=lambda score: score.benchmark)]
    tables = []
    for name, members in groups:
        table_caption, table_label = caption, label
        if len(groups) > 1:
            table_caption, table_label = caption and f"{caption} {name}.", label and f"{label}:{make_slug([name])[4:]}"
        tables.append(_format_table(name, members, table_caption or f"Recorded baselines on {name}.", table_label))
    return "\n".join(tables)


def _format_table(benchmark: str, scores: Sequence[RecordedScore], caption: str, label: str) -> str:
    primary = find_benchmark(benchmark).metrics[0]
    percent = primary.bounds == (0, 1)
    unit, direction = " (%)" if percent else "", ", lower is better" if primary.better == "lower" else ""
    lead = find_best_names({score.model: score.ood for score in scores}, primary.better)
    models = {score.model: (Cell(score.id), Cell(score.ood, score.model in lead), Cell(score.gap)) for score in scores}
    block = Block(benchmark, f"{primary.name}{unit}{direction}", percent, HEADS, models)
    marked = [name for name in find_undertrained(benchmark) if name in models]
    seeds = sorted({len(score.seeds) for score in scores})
    sentences = [
        OVERLAP if len(scores) > 1 else "",
        "Brackets: 95 % t intervals over test rows and training seeds.",
        "Gaps are in percentage points." if percent else "",
        f"Seeds: {', '.join(map(str, seeds))}.",
        f"Undertrained, so their OOD scores do not measure the shift: {', '.join(marked)}." if marked else "",
    ]
    return render_blocks([block], caption, label, sentences)
