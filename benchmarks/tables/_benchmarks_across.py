"""Scores as papers show them: a row for each model, and ID, OOD and gap of each benchmark side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..statistics.interval import HasInterval
from ._booktabs import Column, Notes, escaped, interval, slug, table, tabular, value

PAGE, LETTER, NUMBER = 397.0, 4.6, 47.0
"""Points of a page's width (5.5 inches), and about how wide a letter of a name and a column of numbers are."""

OVERLAP = (
    "Bold: the best OOD score of a benchmark and those whose intervals overlap with that of the best; this is no test."
)
TIED = (
    "Bold: the best OOD score of a benchmark and those that do not differ significantly from it (max-t over all pairs, "
    "rows paired, 5 %)."
)


@dataclass(frozen=True)
class Cell:
    """A number of a model on a benchmark; None where there is none. remark: what its mark refers to."""

    found: HasInterval | None
    bold: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Block:
    """A benchmark: its title, its metric in words, the heads of its columns, and for each model its cells."""

    title: str
    metric: str
    percent: bool
    heads: tuple[str, ...]
    models: Mapping[str, tuple[Cell, ...]]


def rendered(blocks: Sequence[Block], caption: str, label: str, sentences: Sequence[str]) -> str:
    """One `table` environment with all of the blocks, as many beside each other as the page is wide; where there are
    several, intervals stand beneath the numbers. Models come in the order in which they first do. An empty caption or
    label is made of the benchmarks' names."""
    notes = Notes([_metrics(blocks), *filter(None, sentences)])
    stacked = len(blocks) > 1
    tabulars = [_tabular(part, stacked, notes) for part in _parts(blocks)]
    titles = [block.title for block in blocks]
    return table(tabulars, caption or f"Scores on {_listed(titles)}.", label or slug(titles), notes)


def best(blocks: Mapping[str, HasInterval], better: str) -> frozenset[str]:
    """Of several models those whose intervals overlap with that of the best; of a single one none."""
    if len(blocks) < 2:
        return frozenset()
    sign = -1 if better == "lower" else 1
    first = max(blocks.values(), key=lambda one: sign * one.value)
    return frozenset(name for name, one in blocks.items() if one.low <= first.high and first.low <= one.high)


def _parts(blocks: Sequence[Block]) -> list[list[Block]]:
    """The blocks in their order, as many beside each other as the page is wide, and at least one."""
    parts: list[list[Block]] = []
    for block in blocks:
        together = [*(parts[-1] if parts else []), block]
        names = max(len(name) for one in together for name in one.models)
        fits = LETTER * names + NUMBER * sum(len(one.heads) for one in together) <= PAGE
        if parts and fits:
            parts[-1] = together
        else:
            parts.append([block])
    return parts


def _tabular(blocks: Sequence[Block], stacked: bool, notes: Notes) -> str:
    columns = [Column("model", number=False)]
    columns += [Column(head, escaped(block.title)) for block in blocks for head in block.heads]
    rows = []
    for name in dict.fromkeys(name for block in blocks for name in block.models):
        cells = [(block, cell) for block in blocks for cell in block.models.get(name, [Cell(None)] * len(block.heads))]
        numbers = [
            "--" if cell.found is None else value(cell.found, block.percent, cell.bold) + _mark(cell, notes)
            for block, cell in cells
        ]
        ends = ["" if cell.found is None else interval(cell.found, block.percent) for block, cell in cells]
        if stacked:
            rows += [[escaped(name), *numbers], ["", *ends]]
        else:
            rows.append([escaped(name), *(" ".join(both).strip() for both in zip(numbers, ends, strict=True))])
    return tabular(columns, rows)


def _mark(cell: Cell, notes: Notes) -> str:
    return notes.mark(cell.remark) if cell.remark else ""


def _metrics(blocks: Sequence[Block]) -> str:
    """Which metric is whose: `accuracy@1 (%).`, or `accuracy@1 (%): a, b; mae@1, lower is better: c.`"""
    whose: dict[str, list[str]] = {}
    for block in blocks:
        whose.setdefault(block.metric, []).append(block.title)
    if len(whose) == 1:
        return f"Metric: {blocks[0].metric}."
    return f"Metrics: {'; '.join(f'{metric}: {_listed(names)}' for metric, names in whose.items())}."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
