"""A LaTeX table for a paper: a row for each model, the benchmarks side by side (`_booktabs.py` has requirements)."""

from __future__ import annotations

from collections.abc import Sequence

from ..plot._panels import Panel, describe_incomparable, describe_intervals, make_panels
from ..scoring.record import Score
from ..statistics.interval import Estimate, is_measured
from ._benchmarks_across import OVERLAP, TIED, Block, Cell, find_best_names, render_blocks
from ._grid import SCORES, format_seeds

OPTIONS = ("caption", "label", "leaders")


def render(
    records: Sequence[Score], *, caption: str = "", label: str = "", leaders: Sequence[bool] | None = None
) -> str:
    """Render a `table` environment with ID, OOD, gap and, if available, the worst group's score of each benchmark; a
    note explains the brackets, bold type and marks.

    leaders: for each record whether its OOD score is bold (`comparison.find_leaders`); by default those whose intervals
    overlap with that of the best. Raises `FarshiftError` if records of one identity have different metrics."""
    panel_list = make_panels(records)
    bold = None if leaders is None else {id(leader) for leader, leads in zip(records, leaders, strict=True) if leads}
    blocks = [_make_block(panel, bold) for panel in panel_list]
    has_several = any(len(panel.records) > 1 for panel in panel_list)
    sentences = [
        (OVERLAP if leaders is None else TIED) if has_several else "",
        f"Brackets: {describe_intervals(records)}.",
        "Gaps are in percentage points." if any(panel.percent for panel in panel_list) else "",
        "The worst-group score is the worst of several noisy scores, so it is biased towards worse values."
        if any(record.worst_group for record in records)
        else "",
        _describe_seeds(records),
        describe_incomparable(records),
    ]
    return render_blocks(blocks, caption, label, sentences)


def _make_block(panel: Panel, bold: set[int] | None) -> Block:
    by_name = dict(zip(panel.names, panel.records, strict=True))
    lead = find_best_names(
        {name: member.ood for name, member in by_name.items() if is_measured(member.ood)}, panel.records[0].better
    )
    worst = any(record.worst_group for record in panel.records)
    models = {
        name: _make_cells(record, name in lead if bold is None else id(record) in bold, worst)
        for name, record in by_name.items()
    }
    heads = (*SCORES[:3], *(["worst group"] if worst else []))
    return Block(panel.title, panel.metric, panel.percent, heads, models)


def _make_cells(record: Score, leads: bool, worst: bool) -> tuple[Cell, ...]:
    few = f"{format_seeds(record)} seeds." if len(record.seeds) < record.protocol_seeds else ""
    cells = [
        Cell(_get_estimate(record.id)),
        Cell(_get_estimate(record.ood), leads, few),
        Cell(_get_estimate(record.gap)),
    ]
    if worst:
        group = record.worst_group
        remark = "" if group is None else f"{group.group}, of {len(group.groups)} groups."
        cells.append(Cell(None if group is None else group.estimate, remark=remark))
    return tuple(cells)


def _get_estimate(estimate: object) -> Estimate | None:
    return estimate if isinstance(estimate, Estimate) else None


def _describe_seeds(records: Sequence[Score]) -> str:
    """Describe the number of seeds of the scores that have no footnote about it."""
    counts = sorted({len(record.seeds) for record in records if len(record.seeds) >= record.protocol_seeds})
    return f"Seeds: {', '.join(map(str, counts))}." if counts else ""
