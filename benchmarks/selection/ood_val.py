"""ood_val: the best candidate on shifted validation rows. It uses labels of a shifted distribution, but no test
labels."""

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
