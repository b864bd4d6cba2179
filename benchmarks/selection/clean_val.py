"""clean_val: the best on in-distribution validation rows by their *true* labels. Where labels are corrupted this reads
what training may not, so a protocol that allows it declares it by listing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import SelectionData, needs_part

if TYPE_CHECKING:
    from ..benchmark import Benchmark

PART = "id_val"


def unavailable(benchmark: Benchmark) -> str:
    if benchmark.kind != "corrupted-label":
        return "clean_val is for corrupted labels; elsewhere it is id_val"
    return needs_part(benchmark, PART)


def ballot(benchmark: Benchmark) -> SelectionData:
    part = benchmark.part(PART)
    return SelectionData(part.row_ids, part.true_labels())
