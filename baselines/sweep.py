"""Running baselines: recipes x benchmarks x seeds, fanned out by an engine, each into its run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..benchmarks.benchmark import Benchmark, find_benchmark
from ..benchmarks.device import check_device
from ..benchmarks.handout import hand_out
from ..benchmarks.harness import begin, seed_numbers
from ..benchmarks.model import Budget, Model
from ..benchmarks.one_seed import run_seed
from ..benchmarks.run import Run
from ..benchmarks.run_folder import RunFolder
from ..loaders.cache import file_sha256
from ..loaders.progress import advance, say
from ..splits.canonical import identity_of
from ..splits.errors import FarshiftError, MissingExtra, restated
from ..splits.plugins import PACKAGE, module_file
from .baseline import check_task
from .engines import Engine
from .engines import engine as find_engine
from .recipe import Recipe
from .recipe import recipe as find_recipe


@dataclass(frozen=True)
class Plan:
    """One baseline on one benchmark: a run to be."""

    recipe: Recipe
    benchmark: Benchmark
    budget: Budget
    seeds: list[int]
    out: Path

    def begin(self) -> AbstractContextManager[RunFolder]:
        model = {"name": self.recipe.name, "kind": "baseline", "code": code_digest(self.recipe)}
        return begin(self.benchmark, self.out, model, self.budget, self.seeds)


@dataclass(frozen=True)
class Replica:
    """One seed of a plan, as it travels to a worker process."""

    folder: Path
    plan: dict[str, object]
    recipe: str
    benchmark: str
    budget: Budget
    seed: int


def code_digest(recipe: Recipe) -> str:
    """sha256 over all that makes a baseline's result: the recipe, the code of the trainer, network and algorithm, and
    the versions of Farshift, torch and scikit-learn."""
    room = PACKAGE / "baselines"
    paths = [room / f"{name}.py" for name in ("baseline", "decoding", "encoding", "recipe", "trainer")]
    if recipe.network and recipe.algorithm:
        paths += sorted((room / "networks").glob("_*.py"))
        paths.append(module_file("baselines/networks", recipe.network, "network"))
        paths.append(module_file("baselines/algorithms", recipe.algorithm, "algorithm"))
    versions = [_installed(name) for name in ("farshift", "torch", "scikit-learn")]
    return identity_of([recipe.model_dump(mode="json"), [file_sha256(path) for path in paths], versions])


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def require_extras() -> None:
    """Say what is missing before a run is begun."""
    for name in ("torch", "sklearn"):
        try:
            import_module(name)
        except ImportError as error:
            raise MissingExtra(f"training a baseline (with {name})", "train") from error


def run_replica(replica: Replica) -> None:
    """Train and ask one replica, and keep its predictions. Importable by name, for worker processes."""
    from .baseline import Baseline

    benchmark, recipe = find_benchmark(replica.benchmark), find_recipe(replica.recipe)

    def make(seed: int, setting: Mapping[str, Any]) -> Model:
        return Baseline(recipe, benchmark.task, seed, benchmark.name)

    run_seed(RunFolder(replica.folder, replica.plan), benchmark, make, replica.seed, replica.budget)


def run_plans(plans: Sequence[Plan], engine: str) -> list[Run]:
    """Run all missing replicas of all plans and finish their folders, in the order of `plans`.

    A replica that fails does not stop the others; its error is raised at the end, and what is done is kept."""
    go = find_engine(engine)
    require_extras()
    for plan in plans:
        check_task(plan.recipe, plan.benchmark.task)
    with ExitStack() as held:
        folders = [held.enter_context(plan.begin()) for plan in plans]
        _run_missing(plans, folders, go)
        return [folder.finish() for folder in folders]


def _run_missing(plans: Sequence[Plan], folders: list[RunFolder], go: Engine) -> None:
    replicas = [
        (number, Replica(folder.path, folder.plan, plan.recipe.name, plan.benchmark.name, plan.budget, seed))
        for number, (plan, folder) in enumerate(zip(plans, folders, strict=True))
        for seed in folder.missing()
    ]
    failed: list[tuple[Plan, int, FarshiftError]] = []
    left = [sum(owner == number for owner, _ in replicas) for number in range(len(plans))]
    advance("training", 0, len(replicas))
    for done, (index, error) in enumerate(go(run_replica, [replica for _, replica in replicas]), 1):
        number, replica = replicas[index]
        plan = plans[number]
        if error is not None:
            failed.append((plan, replica.seed, error))
            say(f"{plan.recipe.name} on {plan.benchmark.name}, seed {replica.seed}, failed: {error}")
        left[number] -= 1
        advance("training", done, len(replicas))
        if not left[number] and error is None:
            say(f"{plan.recipe.name} on {plan.benchmark.name}: {len(plan.seeds)} seeds done")
    if failed:
        plan, seed, error = failed[0]
        more = f" (and {len(failed) - 1} more replicas failed)" if len(failed) > 1 else ""
        raise restated(type(error), f"{plan.recipe.name} on {plan.benchmark.name}, seed {seed}: {error}{more}")


def run_baseline(
    name: str,
    on: str,
    *,
    seeds: int | Sequence[int] | None = None,
    out: Path | str,
    budget: str = "full",
    steps: int | None = None,
    device: str = "cpu",
    engine: str = "local",
) -> Run:
    """Train the baseline `name` on the benchmark `on` and write its run folder `out`; an unfinished run goes on.

    seeds: how many, or which (the protocol's number by default). budget: "full" or "quick"; `steps` overrides its
    optimiser steps. engine: "local" or "processes" (one process a core).
    """
    recipe, benchmark = find_recipe(name), find_benchmark(on)
    if budget not in ("full", "quick"):
        raise FarshiftError(f"budget {budget!r}: use full or quick")
    check_device(device)
    hand_out(benchmark)  # pulled once here, not by every worker
    numbers = seed_numbers(seeds, benchmark, budget)
    plan = Plan(recipe, benchmark, Budget(budget, steps, device), numbers, Path(out))
    return run_plans([plan], engine)[0]
