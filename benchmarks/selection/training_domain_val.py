"""training_domain_val: the best candidate on in-distribution validation rows, with equal weight for each training
group (domain).

The training-domain validation of DomainBed (Gulrajani and Lopez-Paz, ICLR 2021): the mean over training domains of the
accuracy on the rows held out from each. No target data is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import SelectionData, needs_part

if TYPE_CHECKING:
    from ..benchmark import Benchmark

DECLARED = True
PART = "id_val"


def unavailable(benchmark: Benchmark) -> str:
    if reason := needs_part(benchmark, PART):
        return reason
    groups = benchmark.part(PART).row_metadata.get("group")
    few = groups is None or len(np.unique(groups)) < 2
    return f"the rows of {PART} have fewer than two groups: use id_val" if few else ""


def ballot(benchmark: Benchmark) -> SelectionData:
    part = benchmark.part(PART)
    return SelectionData(part.row_ids, part.observed_labels(), part.row_metadata["group"])
