"""Algorithmic tasks by size: drawn instances of a task of `loaders/generators/tasks`, with a given number per size.

All instances of a source differ, so no test instance is in training; if a small size has too few instances, there are
fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ...core.errors import BadDefinition
from ...core.plugins import load_function
from .tasks import Draws, Examples

Task = Callable[..., Examples]

_PER_ITEM = 16
"""Draws per required row, after which a size is assumed to have no more distinct instances."""


def rows(
    *,
    task: str,
    seed: str,
    sizes: list[dict[str, int]],
    measure: str = "length",
    options: dict[str, Any] | None = None,
) -> pa.Table:
    """The instances of `task` ("file/function"), drawn from the stream `seed`.

    Each of `sizes` is a range: `first`, `last`, `step` (1 by default) and `each`, the rows of every size in it.
    `options` are passed to the task. Columns: `input` and `output` (text), the size under the name `measure`, `item`
    (the number of the draw, which pairs the formats of one task and seed: 2^20 x size + draw), and further columns of
    the task.
    """
    make: Task = load_function("loaders/generators/tasks", task, "task")
    columns: dict[str, list[Any]] = {"input": [], "output": [], measure: [], "item": []}
    for size, each in _expand_sizes(task, sizes):
        examples, indices = _draw_distinct(make, f"{seed}/{size}", size, each, options or {})
        columns["input"] += [examples.inputs[index] for index in indices]
        columns["output"] += [examples.outputs[index] for index in indices]
        columns[measure] += [size] * len(indices)
        columns["item"] += [(size << 20) + index for index in indices]
        for name, values in examples.meta.items():
            columns.setdefault(name, []).extend(values[index] for index in indices)
    return pa.table(columns)


def _expand_sizes(task: str, ranges: list[dict[str, int]]) -> list[tuple[int, int]]:
    """Return (size, rows) for every size of the ranges, ascending."""
    counts: dict[int, int] = {}
    for size_range in ranges:
        if not {"first", "last", "each"} <= size_range.keys() <= {"first", "last", "each", "step"}:
            raise BadDefinition(f"task {task}: sizes: each range needs first, last, each and, if not 1, step")
        for size in range(size_range["first"], size_range["last"] + 1, size_range.get("step", 1)):
            if size in counts:
                raise BadDefinition(f"task {task}: sizes: {size} is in two ranges")
            counts[size] = size_range["each"]
    return sorted(counts.items())


def _draw_distinct(
    make: Task, stream: str, size: int, count: int, options: dict[str, Any]
) -> tuple[Examples, list[int]]:
    """Draw examples of one size; return them and the indices of the first `count` distinct ones (fewer if there
    are)."""
    most = _PER_ITEM * count + 64
    draw_count = count + count // 8 + 2
    while True:
        examples = make(Draws(stream, draw_count), size, **options)
        items = examples.inputs if examples.items is None else examples.items
        first: dict[str, int] = {}
        for index, item in enumerate(items):
            if examples.is_valid is None or examples.is_valid[index]:
                first.setdefault(item, index)
        if len(first) >= count or draw_count == most:
            return examples, list(first.values())[:count]
        draw_count = min(2 * draw_count, most)
