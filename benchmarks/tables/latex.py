"""A LaTeX table for a paper: a row for each model, the benchmarks side by side (`_booktabs.py` says what it needs)."""

from __future__ import annotations

from collections.abc import Sequence

from ..plot._panels import Panel, apart, meaning_of_intervals, panels
from ..scoring.record import Score
from ..statistics.interval import Estimate, measured
from ._benchmarks_across import OVERLAP, TIED, Block, Cell, best, rendered
from ._grid import SCORES, seeds

OPTIONS = ("caption", "label", "leaders")


def render(
    records: Sequence[Score], *, caption: str = "", label: str = "", leaders: Sequence[bool] | None = None
) -> str:
    """A `table` environment: ID, OOD, gap and, where there is one, the worst group's score of each benchmark; a note
    says what the brackets, bold type and marks mean.

    leaders: for each record whether its OOD score is bold (`comparison.leaders`); without it those whose intervals
    overlap with that of the best. `FarshiftError` where records of one identity are scored by different metrics."""
    shown = panels(records)
    bold = None if leaders is None else {id(one) for one, leads in zip(records, leaders, strict=True) if leads}
    blocks = [_block(panel, bold) for panel in shown]
    several = any(len(panel.records) > 1 for panel in shown)
    sentences = [
        (OVERLAP if leaders is None else TIED) if several else "",
        f"Brackets: {meaning_of_intervals(records)}.",
        "Gaps are in percentage points." if any(panel.percent for panel in shown) else "",
        "A worst group is the worst of several noisy scores, and so looks worse than it is."
        if any(record.worst_group for record in records)
        else "",
        _seeds(records),
        apart(records),
    ]
    return rendered(blocks, caption, label, sentences)


def _block(panel: Panel, bold: set[int] | None) -> Block:
    by_name = dict(zip(panel.names, panel.records, strict=True))
    lead = best({name: one.ood for name, one in by_name.items() if measured(one.ood)}, panel.records[0].better)
    worst = any(record.worst_group for record in panel.records)
    models = {
        name: _cells(record, name in lead if bold is None else id(record) in bold, worst)
        for name, record in by_name.items()
    }
    heads = (*SCORES[:3], *(["worst group"] if worst else []))
    return Block(panel.title, panel.metric, panel.percent, heads, models)


def _cells(record: Score, leads: bool, worst: bool) -> tuple[Cell, ...]:
    few = f"{seeds(record)} seeds." if len(record.seeds) < record.protocol_seeds else ""
    cells = [Cell(_known(record.id)), Cell(_known(record.ood), leads, few), Cell(_known(record.gap))]
    if worst:
        group = record.worst_group
        told = "" if group is None else f"{group.group}, of {len(group.groups)} groups."
        cells.append(Cell(None if group is None else group.estimate, remark=told))
    return tuple(cells)


def _known(found: object) -> Estimate | None:
    return found if isinstance(found, Estimate) else None


def _seeds(records: Sequence[Score]) -> str:
    """How many seeds a score has, where a mark does not say so."""
    counts = sorted({len(record.seeds) for record in records if len(record.seeds) >= record.protocol_seeds})
    return f"Seeds: {', '.join(map(str, counts))}." if counts else ""
