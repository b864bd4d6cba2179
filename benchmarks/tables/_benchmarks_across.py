"""A table of scores in the layout of papers: a row for each model, with ID, OOD and gap of the benchmarks side by
side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..statistics.interval import HasInterval
from ._booktabs import (
    Column,
    Notes,
    escape_latex,
    format_interval,
    format_table,
    format_tabular,
    format_value,
    make_slug,
)

PAGE, LETTER, NUMBER = 397.0, 4.6, 47.0
"""In points: the width of a page (5.5 inches), and approximate widths of a letter and of a column of numbers."""

OVERLAP = (
    "Bold: the best OOD score of a benchmark and those whose intervals overlap with that of the best (not a test)."
)
TIED = (
    "Bold: the best OOD score of a benchmark and those that do not differ significantly from it (max-t over all pairs, "
    "paired rows, 5 %)."
)


@dataclass(frozen=True)
class Cell:
    """A model's value on a benchmark, None if it is missing. remark: the text of its footnote."""

    estimate: HasInterval | None
    bold: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Block:
    """A benchmark: its title, a description of its metric, its column headers, and the cells of each model."""

    title: str
    metric: str
    percent: bool
    heads: tuple[str, ...]
    models: Mapping[str, tuple[Cell, ...]]


def render_blocks(blocks: Sequence[Block], caption: str, label: str, sentences: Sequence[str]) -> str:
    """Render all blocks in one `table` environment, as many side by side as fit the page width.

    With several blocks, intervals are printed below the values. Models are in order of first appearance. The default
    caption and label are derived from the benchmarks' names."""
    notes = Notes([_format_metrics(blocks), *filter(None, sentences)])
    stacked = len(blocks) > 1
    tabulars = [_format_part(part, stacked, notes) for part in _split_parts(blocks)]
    titles = [block.title for block in blocks]
    return format_table(tabulars, caption or f"Scores on {_join_names(titles)}.", label or make_slug(titles), notes)


def find_best_names(blocks: Mapping[str, HasInterval], better: str) -> frozenset[str]:
    """Return the models whose intervals overlap with that of the best; none if there is only one model."""
    if len(blocks) < 2:
        return frozenset()
    sign = -1 if better == "lower" else 1
    first = max(blocks.values(), key=lambda block: sign * block.value)
    return frozenset(name for name, block in blocks.items() if block.low <= first.high and first.low <= block.high)


def _split_parts(blocks: Sequence[Block]) -> list[list[Block]]:
    """Split the blocks, in order, into parts that fit the page width; each part has at least one block."""
    parts: list[list[Block]] = []
    for block in blocks:
        neighbours = [*(parts[-1] if parts else []), block]
        names = max(len(name) for neighbour in neighbours for name in neighbour.models)
        fits = LETTER * names + NUMBER * sum(len(neighbour.heads) for neighbour in neighbours) <= PAGE
        if parts and fits:
            parts[-1] = neighbours
        else:
            parts.append([block])
    return parts


def _format_part(blocks: Sequence[Block], stacked: bool, notes: Notes) -> str:
    columns = [Column("model", number=False)]
    columns += [Column(head, escape_latex(block.title)) for block in blocks for head in block.heads]
    rows = []
    for name in dict.fromkeys(name for block in blocks for name in block.models):
        cells = [(block, cell) for block in blocks for cell in block.models.get(name, [Cell(None)] * len(block.heads))]
        numbers = [
            "--"
            if cell.estimate is None
            else format_value(cell.estimate, block.percent, cell.bold) + _format_mark(cell, notes)
            for block, cell in cells
        ]
        ends = ["" if cell.estimate is None else format_interval(cell.estimate, block.percent) for block, cell in cells]
        if stacked:
            rows += [[escape_latex(name), *numbers], ["", *ends]]
        else:
            rows.append([escape_latex(name), *(" ".join(both).strip() for both in zip(numbers, ends, strict=True))])
    return format_tabular(columns, rows)


def _format_mark(cell: Cell, notes: Notes) -> str:
    return notes.mark(cell.remark) if cell.remark else ""


def _format_metrics(blocks: Sequence[Block]) -> str:
    """Describe the metrics: `accuracy@1 (%).`, or `accuracy@1 (%): a, b; mae@1, lower is better: c.`"""
    whose: dict[str, list[str]] = {}
    for block in blocks:
        whose.setdefault(block.metric, []).append(block.title)
    if len(whose) == 1:
        return f"Metric: {blocks[0].metric}."
    return f"Metrics: {'; '.join(f'{metric}: {_join_names(names)}' for metric, names in whose.items())}."


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
