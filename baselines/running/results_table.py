"""Recorded results as LaTeX tables, one a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.tables._benchmarks_across import OVERLAP, Block, Cell, best, rendered
from ...benchmarks.tables._booktabs import slug
from .learnt import not_learnt
from .recorded_scores import RecordedScore

HEADS = ("ID", "OOD", "gap")


def latex(found: Sequence[RecordedScore], caption: str = "", label: str = "") -> str:
    """A `table` environment for each benchmark of the results, which are sorted by benchmark. Of several tables caption
    and label are the beginnings."""
    groups = [(name, list(members)) for name, members in groupby(found, key=lambda one: one.benchmark)]
    tables = []
    for name, members in groups:
        told, marked = caption, label
        if len(groups) > 1:
            told, marked = caption and f"{caption} {name}.", label and f"{label}:{slug([name])[4:]}"
        tables.append(_table(name, members, told or f"Recorded baselines on {name}.", marked))
    return "\n".join(tables)


def _table(benchmark: str, found: Sequence[RecordedScore], caption: str, label: str) -> str:
    primary = find_benchmark(benchmark).metrics[0]
    percent = primary.bounds == (0, 1)
    unit, direction = " (%)" if percent else "", ", lower is better" if primary.better == "lower" else ""
    lead = best({one.model: one.ood for one in found}, primary.better)
    models = {one.model: (Cell(one.id), Cell(one.ood, one.model in lead), Cell(one.gap)) for one in found}
    block = Block(benchmark, f"{primary.signature}{unit}{direction}", percent, HEADS, models)
    marked = [name for name in not_learnt(benchmark) if name in models]
    seeds = sorted({len(one.seeds) for one in found})
    sentences = [
        OVERLAP if len(found) > 1 else "",
        "Brackets: 95 % t intervals over test rows and training seeds.",
        "Gaps are in percentage points." if percent else "",
        f"Seeds: {', '.join(map(str, seeds))}.",
        f"Not learnt in distribution, so that nothing is said of the shift: {', '.join(marked)}." if marked else "",
    ]
    return rendered([block], caption, label, sentences)
