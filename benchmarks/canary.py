"""A benchmark's canary: a unique string that identifies its text (after the canary GUID of BIG-bench, Srivastava et al.
2022, arXiv:2206.04615). It is printed with each export of the labels of its test rows."""

from __future__ import annotations

from uuid import UUID

from ..core.canonical import compute_identity
from .benchmark import Benchmark

TEXT = "FARSHIFT CANARY, no training on this data:"


def make_guid(benchmark: Benchmark) -> str:
    """Return the benchmark's GUID: the first bits of sha256 over its name and its manifest's identity."""
    digest = compute_identity({"canary": benchmark.name, "manifest": benchmark.manifest.identity})
    return str(UUID(digest[:32]))


def make_canary(benchmark: Benchmark) -> str:
    """Return the whole canary line."""
    return f"{TEXT} {benchmark.name} {make_guid(benchmark)}"
