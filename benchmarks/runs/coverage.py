"""What of a benchmark a model was asked: all of it, by default.

A run card may say under `model` that it was less. `limit = N`: N rows of each part, a trial that no board takes.
`left_out`: validation parts that its rule does not judge by, which a model of one candidate needs no answers to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...loaders.part import Part
from ..benchmark import VALIDATION, Benchmark


@dataclass(frozen=True)
class LimitedBenchmark(Benchmark):
    """A benchmark of which `limit` rows of each part are asked and scored."""

    limit: int

    def part(self, name: str) -> Part:
        full_part = super().part(name)
        return full_part.select(select_limited_rows(self.name, name, full_part.row_ids, self.limit))


def limit_benchmark(benchmark: Benchmark, limit: int) -> LimitedBenchmark:
    own = {field.name: getattr(benchmark, field.name) for field in fields(Benchmark)}
    return LimitedBenchmark(**own, limit=limit)


def select_limited_rows(benchmark: str, part: str, row_ids: NDArray[np.uint64], limit: int) -> NDArray[np.int64]:
    """Which rows of a part are asked under a limit: their places, ascending. Drawn by their ids: the same each time,
    and among those of any larger limit."""
    return np.sort(draw_permutation(f"limit/{benchmark}/{part}", row_ids)[:limit])


def read_limit(model: Mapping[str, Any]) -> int | None:
    """The limit that a run card's table `model` states; None for a whole run."""
    stated = model.get("limit")
    return stated if type(stated) is int and stated > 0 else None


def list_predicted_parts(benchmark: Benchmark, model: Mapping[str, Any]) -> list[str]:
    """The parts that a run's candidates predict, by its card's table `model`. A part that it may not leave out is among
    them, whatever the card says."""
    stated = model.get("left_out")
    left_out = {*map(str, stated)} if isinstance(stated, list) else set()
    return [
        name for name in benchmark.predicted_parts if name not in left_out & {*list_selection_only_parts(benchmark)}
    ]


def list_selection_only_parts(benchmark: Benchmark) -> list[str]:
    """The validation parts that no view shows: they serve selection rules alone."""
    shown = {view.part for view in benchmark.definition.views.values()}
    return [name for name in VALIDATION if benchmark.has_part(name) and name not in shown]
