"""What a shell's tab offers for the value of an argument or option, by how the help calls the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def _list_benchmarks(incomplete: str) -> Iterable[str]:
    from ..benchmarks.benchmark import load_benchmarks

    return load_benchmarks()


def _list_splits(incomplete: str) -> Iterable[str]:
    from ..splits.catalogue import list_manifests

    return dict.fromkeys(manifest.name for manifest in list_manifests())


def _list_baselines(incomplete: str) -> Iterable[str]:
    from ..baselines.recipe import load_recipes

    return load_recipes()


def _list_suites(incomplete: str) -> Iterable[str]:
    from ..benchmarks.listing import count_suites

    return count_suites()


def _list_runs(incomplete: str) -> Iterable[str]:
    """Run folders at most two levels below what is typed, and recorded results once `baseline:` is begun."""
    if incomplete and "baseline:".startswith(incomplete[:9]):
        from ..baselines.running.results import list_results

        return [f"baseline:{name}@{benchmark}" for benchmark, name in list_results()]
    above = Path(incomplete).parent if incomplete and not incomplete.endswith("/") else Path(incomplete)
    return [str(file.parent) for depth in ("*", "*/*") for file in above.glob(f"{depth}/run.toml")]


_VALUES: dict[str, Callable[[str], Iterable[str]]] = {
    "BASELINE": _list_baselines,
    "BENCHMARK": _list_benchmarks,
    "RUN": _list_runs,
    "SPLIT": _list_splits,
    "SUITE": _list_suites,
}


def find_completion(metavar: str | None) -> Callable[[str], list[str]] | None:
    """The function that gives the values for what is typed, of a value that the help calls `metavar`; None for any
    other value, for which shells offer files."""
    list_values = _VALUES.get((metavar or "").removesuffix("..."))
    if list_values is None:
        return None
    return lambda incomplete: [value for value in sorted(list_values(incomplete)) if value.startswith(incomplete)]
