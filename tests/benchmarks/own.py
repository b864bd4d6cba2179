"""Benchmarks of the tests' own: a shipped one with parts of its definition changed."""

from __future__ import annotations

from typing import Any

from farshift.benchmarks.benchmark import Benchmark, find_benchmark
from farshift.benchmarks.definition import BenchmarkDefinition


def changed(name: str, change: dict[str, Any]) -> Benchmark:
    """The benchmark `name`; tables of `change` are merged into the definition's, anything else replaces it."""
    known = find_benchmark(name)
    raw = known.definition.model_dump()
    for key, value in change.items():
        raw[key] = raw[key] | value if isinstance(value, dict) and isinstance(raw[key], dict) else value
    return Benchmark(BenchmarkDefinition.model_validate(raw), known.path)
