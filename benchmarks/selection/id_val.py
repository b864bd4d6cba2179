"""id_val: the best candidate on in-distribution validation rows, by the observed labels, including noisy ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import SelectionData, needs_part

if TYPE_CHECKING:
    from ..benchmark import Benchmark

PART = "id_val"


def unavailable(benchmark: Benchmark) -> str:
    return needs_part(benchmark, PART)


def ballot(benchmark: Benchmark) -> SelectionData:
    part = benchmark.part(PART)
    return SelectionData(part.row_ids, part.observed_labels())
