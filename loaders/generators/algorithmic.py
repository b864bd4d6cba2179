"""Algorithmic tasks by size: drawn instances of a task of `loaders/generators/tasks`, so many of each size.

All instances of a source differ, so none of a test part stands in training; where a small size has too few, fewer
are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.errors import BadDefinition
from ...core.plugins import function
from .tasks import Draws, Examples

if TYPE_CHECKING:
    import pyarrow as pa

Task = Callable[..., Examples]

_PER_ITEM = 16
"""Draws spent for each row that is asked for, before a size is held to have no more different instances."""


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
    `options` go to the task. Columns: `input` and `output` (text), the size under the name `measure`, `item` (the
    number of the draw, by which formats of one task and seed are paired: 2^20 x size + draw), and what else the task
    gives.
    """
    import pyarrow as pa

    make: Task = function("loaders/generators/tasks", task, "task")
    columns: dict[str, list[Any]] = {"input": [], "output": [], measure: [], "item": []}
    for size, each in _each_size(task, sizes):
        examples, places = _different(make, f"{seed}/{size}", size, each, options or {})
        columns["input"] += [examples.inputs[place] for place in places]
        columns["output"] += [examples.outputs[place] for place in places]
        columns[measure] += [size] * len(places)
        columns["item"] += [(size << 20) + place for place in places]
        for name, values in examples.meta.items():
            columns.setdefault(name, []).extend(values[place] for place in places)
    return pa.table(columns)


def _each_size(task: str, ranges: list[dict[str, int]]) -> list[tuple[int, int]]:
    """(size, rows) for every size of the ranges, ascending."""
    found: dict[int, int] = {}
    for one in ranges:
        if not {"first", "last", "each"} <= one.keys() <= {"first", "last", "each", "step"}:
            raise BadDefinition(f"task {task}: sizes: each range gives first, last, each and, if not 1, step")
        for size in range(one["first"], one["last"] + 1, one.get("step", 1)):
            if size in found:
                raise BadDefinition(f"task {task}: sizes: {size} stands in two ranges")
            found[size] = one["each"]
    return sorted(found.items())


def _different(make: Task, stream: str, size: int, count: int, options: dict[str, Any]) -> tuple[Examples, list[int]]:
    """Examples of one size, and the places of the first `count` of them that differ (fewer where there are none)."""
    most = _PER_ITEM * count + 64
    drawn = count + count // 8 + 2
    while True:
        examples = make(Draws(stream, drawn), size, **options)
        items = examples.inputs if examples.items is None else examples.items
        first: dict[str, int] = {}
        for place, item in enumerate(items):
            if examples.kept is None or examples.kept[place]:
                first.setdefault(item, place)
        if len(first) >= count or drawn == most:
            return examples, list(first.values())[:count]
        drawn = min(2 * drawn, most)
