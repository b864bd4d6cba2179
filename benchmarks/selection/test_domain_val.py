"""test_domain_val: the best last checkpoint on labelled rows of the test distribution that are held out for selection.

The test-domain validation ("oracle") of DomainBed (Gulrajani and Lopez-Paz, ICLR 2021): a fifth of the test domain is
held out, and each setting is evaluated on it only once, after its last step, to limit access to it. It uses labels of
the test distribution, so it is only available if the protocol lists it; the scored rows are disjoint from these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import needs_part

if TYPE_CHECKING:
    from ..benchmark import Benchmark

DECLARED = True
PART = "ood_val"
LABELS = "true"
FINALS = True


def unavailable(benchmark: Benchmark) -> str:
    if reason := needs_part(benchmark, PART):
        return reason
    has_holdout = any(holdout.part == "ood_test" and holdout.to == PART for holdout in benchmark.definition.holdouts)
    return "" if has_holdout else f"{PART} is not held out from the rows of ood_test: use ood_val"
