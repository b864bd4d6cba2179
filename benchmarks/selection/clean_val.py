"""clean_val: the best candidate on in-distribution validation rows by their *true* labels. Where labels are corrupted,
training may not use these labels; a protocol permits their use for selection by listing this rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import needs_part

if TYPE_CHECKING:
    from ..benchmark import Benchmark

PART = "id_val"
LABELS = "true"


def unavailable(benchmark: Benchmark) -> str:
    if benchmark.kind != "corrupted-label":
        return "clean_val requires corrupted labels; otherwise it is the same as id_val"
    return needs_part(benchmark, PART)
