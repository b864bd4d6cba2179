"""A scorer of a later version, which knows the ones before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from farshift.benchmarks import benchmark


@contextmanager
def newer_scorer(version: int) -> Iterator[None]:
    known = tuple(sorted({*benchmark.KNOWN, benchmark.SCORER, version}))
    with (
        patch.object(benchmark, "SCORER", version),
        patch.object(benchmark, "KNOWN", known),
        patch("farshift.benchmarks.scoring.score.SCORER", version),
    ):
        yield
