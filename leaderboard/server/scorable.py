"""The benchmarks that a board scores: those that its operator lists, or whose data are there. Nothing is downloaded or
built for a submission.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...core.errors import Unavailable, shorten_list
from ...loaders.split import Split, is_cached, open_split


def describe_unscorable(names: Sequence[str], listed: Sequence[str]) -> list[str]:
    """Return a line for each of the names that a board does not score: it is not `listed`, or, without a list, its data
    are not in this machine's cache."""
    known = {} if listed else load_benchmarks()
    why = f"it scores {shorten_list(listed)}" if listed else "its machine does not have the data"
    return [
        f"this board does not score {name}: {why}"
        for name in names
        if name not in listed and (name not in known or not is_cached(known[name].manifest))
    ]


def load_pulled_benchmarks() -> dict[str, PulledBenchmark]:
    """Load all benchmarks, by name, such that they open only data that are in the cache."""
    return {name: PulledBenchmark(item.definition, item.path) for name, item in load_benchmarks().items()}


class NotPulled(Unavailable):
    """Data that the machine which scores does not have; the message names no file or address."""


class PulledBenchmark(Benchmark):
    """A benchmark that raises `NotPulled` if its data are not in the cache."""

    @cached_property
    def split(self) -> Split:
        if not is_cached(self.manifest):
            name = self.definition.split
            raise NotPulled(f"{self.name}: its data are not on the machine that scores (farshift splits pull {name})")
        return open_split(self.definition.split)
