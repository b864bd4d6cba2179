"""oracle: the best on the shifted test rows themselves. No entry is scored by it: what it gains over a rule is that
rule's regret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import SelectionData

if TYPE_CHECKING:
    from ..benchmark import Benchmark

PART = "ood"
"""A view, not a part: its predictions lie under the part that the view is of."""


def unavailable(benchmark: Benchmark) -> str:
    return ""


def ballot(benchmark: Benchmark) -> SelectionData:
    part, truth = benchmark.view(PART)
    return SelectionData(part.row_ids, truth)
