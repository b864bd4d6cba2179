"""The rows of a benchmark that a run predicts: all of them, by default.

A run card may say under `model` that there are fewer. `limit = N`: N rows of each part, a trial that boards reject.
`left_out`: validation parts that the run's rule does not use, which a model with a single candidate need not predict.
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
    """A benchmark limited to `limit` rows of each part."""

    limit: int

    def part(self, name: str) -> Part:
        full_part = super().part(name)
        return full_part.select(select_limited_rows(self.name, name, full_part.row_ids, self.limit))


def limit_benchmark(benchmark: Benchmark, limit: int) -> LimitedBenchmark:
    own = {field.name: getattr(benchmark, field.name) for field in fields(Benchmark)}
    return LimitedBenchmark(**own, limit=limit)


def select_limited_rows(benchmark: str, part: str, row_ids: NDArray[np.uint64], limit: int) -> NDArray[np.int64]:
    """Return the indices of the rows of a part under a limit, ascending. They are drawn by row ids: the same each time,
    and a subset of those of any larger limit."""
    return np.sort(draw_permutation(f"limit/{benchmark}/{part}", row_ids)[:limit])


def read_limit(model: Mapping[str, Any]) -> int | None:
    """Return the limit in a run card's table `model`; None for a complete run."""
    stated = model.get("limit")
    return stated if type(stated) is int and stated > 0 else None


def list_predicted_parts(benchmark: Benchmark, model: Mapping[str, Any]) -> list[str]:
    """List the parts that a run's candidates predict, by its card's table `model`. A part that must not be left out is
    always among them."""
    stated = model.get("left_out")
    left_out = {*map(str, stated)} if isinstance(stated, list) else set()
    return [
        name for name in benchmark.predicted_parts if name not in left_out & {*list_selection_only_parts(benchmark)}
    ]


def list_selection_only_parts(benchmark: Benchmark) -> list[str]:
    """List the validation parts that are in no view: only selection rules use them."""
    shown = {view.part for view in benchmark.definition.views.values()}
    return [name for name in VALIDATION if benchmark.has_part(name) and name not in shown]
