"""ood_val: the best on shifted validation rows. It reads labels of the shifted distribution, none of the test's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import SelectionData, needs_part

if TYPE_CHECKING:
    from ..benchmark import Benchmark

PART = "ood_val"


def unavailable(benchmark: Benchmark) -> str:
    return needs_part(benchmark, PART)


def ballot(benchmark: Benchmark) -> SelectionData:
    part = benchmark.part(PART)
    return SelectionData(part.row_ids, part.true_labels())
