"""oracle: the best candidate on the shifted test rows. No entry is scored by it: its advantage over another rule is
the regret of that rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import SelectionData

if TYPE_CHECKING:
    from ..benchmark import Benchmark

PART = "ood"
"""A view, not a part: its predictions are stored under the part that the view belongs to."""


def unavailable(benchmark: Benchmark) -> str:
    return ""


def ballot(benchmark: Benchmark) -> SelectionData:
    part, truth = benchmark.view(PART)
    return SelectionData(part.row_ids, truth)
