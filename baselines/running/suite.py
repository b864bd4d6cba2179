"""Which baselines belong on which benchmarks, and all of them as plans: what recorded results are made of."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ...benchmarks.benchmark import Benchmark, suite
from ...benchmarks.harness.evaluate import seed_numbers
from ...benchmarks.model import Budget
from ...core.errors import FarshiftError, ModelError
from ..fitness import check_task
from ..recipe import Recipe, recipe, recipes
from .plan import Plan, check_data


def unfit(made: Recipe, benchmark: Benchmark) -> str:
    """Why a recipe does not belong on a benchmark; empty where it does."""
    if not any(fnmatchcase(benchmark.name, pattern) for pattern in made.suits):
        return f"it is for {', '.join(made.suits)}"
    if made.kind not in ("any", benchmark.kind):
        return f"it is for {made.kind} shifts, and this is {benchmark.kind}"
    try:
        check_task(made, benchmark.task)
        check_data(made, benchmark)
    except ModelError as error:
        return str(error)
    return ""


def suite_plans(
    name: str,
    out: Path,
    only: Sequence[str] = (),
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    seeds: int | None = None,
    stack: int = 0,
) -> list[Plan]:
    """A plan for every baseline (or those in `only`) on every benchmark of a suite that it belongs on, each with the
    run folder `out/BENCHMARK/BASELINE`, the slash of the benchmark's name written as two underscores."""
    chosen = [recipe(one) for one in dict.fromkeys(only)] or list(recipes().values())
    plans = [
        Plan(
            made,
            benchmark,
            budget,
            seed_numbers(seeds, benchmark, budget.name),
            folder(out, benchmark.name, made.name),
            stack=stack,
        )
        for benchmark in suite(name)
        for made in chosen
        if not unfit(made, benchmark)
    ]
    if not plans:
        raise FarshiftError(f"none of {', '.join(only) or 'the baselines'} belongs on a benchmark of the suite {name}")
    return plans


def folder(out: Path, benchmark: str, name: str) -> Path:
    """Where the run of a baseline on a benchmark lies under `out`."""
    return out / benchmark.replace("/", "__") / name
