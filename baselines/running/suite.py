"""Which baselines belong on which benchmarks, and plans for all of them: the source of recorded results."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ...benchmarks.benchmark import Benchmark, load_suite
from ...benchmarks.harness.evaluate import list_seeds
from ...benchmarks.model import Budget
from ...core.errors import FarshiftError, ModelError
from ..compatibility import check_task
from ..recipe import Recipe, find_recipe, load_recipes
from .plan import Plan, check_data


def explain_unfit(candidate: Recipe, benchmark: Benchmark) -> str:
    """Say why a recipe does not belong on a benchmark; empty if it does."""
    if not any(fnmatchcase(benchmark.name, pattern) for pattern in candidate.suits):
        return f"it is for {', '.join(candidate.suits)}"
    if candidate.kind not in ("any", benchmark.kind):
        return f"it is for {candidate.kind} shifts, and this is {benchmark.kind}"
    try:
        check_task(candidate, benchmark.task)
        check_data(candidate, benchmark)
    except ModelError as error:
        return str(error)
    return ""


def make_suite_plans(
    name: str,
    out: Path,
    only: Sequence[str] = (),
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    seeds: int | None = None,
    stack: int = 0,
) -> list[Plan]:
    """Make a plan for every baseline (or those in `only`) on every benchmark of a suite that it belongs on. The run
    folder is `out/BENCHMARK/BASELINE`, with the slash of the benchmark's name written as two underscores."""
    chosen = [find_recipe(baseline_name) for baseline_name in dict.fromkeys(only)] or list(load_recipes().values())
    plans = [
        Plan(
            candidate,
            benchmark,
            budget,
            list_seeds(seeds, benchmark, budget.name),
            get_run_folder(out, benchmark.name, candidate.name),
            stack=stack,
        )
        for benchmark in load_suite(name)
        for candidate in chosen
        if not explain_unfit(candidate, benchmark)
    ]
    if not plans:
        raise FarshiftError(f"none of {', '.join(only) or 'the baselines'} fits a benchmark of the suite {name}")
    return plans


def get_run_folder(out: Path, benchmark: str, name: str) -> Path:
    """The run folder of a baseline on a benchmark under `out`."""
    return out / benchmark.replace("/", "__") / name
