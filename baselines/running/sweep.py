"""Run baselines: recipes x benchmarks x seeds, distributed by an engine, each into its run folder."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from shutil import rmtree
from typing import Any

from ...benchmarks.harness.evaluate import list_seeds
from ...benchmarks.harness.loop import Evaluation
from ...benchmarks.harness.predictor import Predictor
from ...benchmarks.model import Budget
from ...benchmarks.model_inputs.load import StreamedBenchmark, find_streamed_benchmark, load_model_inputs
from ...benchmarks.runs.run import Run
from ...benchmarks.runs.run_folder import RunFolder
from ...benchmarks.runs.status import TRAINING, get_fit_file, list_fit_files, read_fit_progress
from ...benchmarks.settings import Settings, check_settings
from ...core.engines import Local, Needs, iterate_outcomes, open_engine, use_free_cores
from ...core.errors import FarshiftError, MissingExtra, replace_error_message
from ...core.progress import log_message, report_progress, run_every
from ...core.text import format_count
from ...core.world import check_device, get_world
from ..diagnostics import parse_diagnostics
from ..recipe import Recipe, find_recipe
from .plan import Plan, split_seeds
from .published import NOTHING, RecipeOverrides
from .resources import list_memory, prepare_data, refuse_shortages


@dataclass(frozen=True)
class GroupJob:
    """Some seeds of a plan, trained as one replica group and sent to a worker. `missing`: the seeds still to be
    predicted."""

    folder: Path
    plan: dict[str, Any]
    recipe: Recipe
    benchmark: str
    budget: Budget
    seeds: tuple[int, ...]
    missing: tuple[int, ...]
    settings: Settings
    stack: int
    steps: int
    """The steps of all its replicas, on all sets of rows; an estimator counts as one."""
    stream: str = ""

    @property
    def label(self) -> str:
        """The label of its training in progress reports, shared by the plan's other groups."""
        return f"{self.recipe.name} on {self.benchmark}{'' if self.recipe.estimator else ', steps'}"

    @property
    def file(self) -> Path:
        """Its progress file."""
        return get_fit_file(self.folder, self.seeds)


@dataclass(frozen=True)
class Failure:
    """A plan with failed replicas, and the first one's error."""

    plan: Plan
    error: FarshiftError

    def __str__(self) -> str:
        return f"{self.plan.title}, {self.error}"


def require_extras() -> None:
    """`MissingExtra` if a library is missing, before a run begins."""
    for name in ("torch", "sklearn"):
        try:
            import_module(name)
        except ImportError as error:
            raise MissingExtra(f"training a baseline (with {name})", "train") from error


def run_group_job(job: GroupJob) -> None:
    """Train a replica group and write the predictions of each of its replicas. Importable by name, for worker
    processes.

    A replica that fails does not stop the others; the first error is raised at the end."""
    from ..training.fit_progress_reporter import FitProgressReporter
    from ..training.replica_group import ReplicaGroup
    from ..training.training_rows import Member

    benchmark, recipe, world = find_streamed_benchmark(job.benchmark, job.stream), job.recipe, get_world()
    members = [Member(seed, values) for seed in job.seeds for values in job.settings.values()]
    reporter = FitProgressReporter(job.label, job.steps, job.file) if world.rank == 0 else None
    group = ReplicaGroup(
        recipe,
        benchmark.task,
        members,
        benchmark.name,
        checkpoints=job.folder / TRAINING,
        stack=job.stack,
        code=str(job.plan["model"]["code"]),
        world=world,
        diagnose=job.plan["model"].get("diagnose", ()),
        reporter=reporter,
    )
    folder, query = RunFolder(job.folder, job.plan), Predictor(benchmark, world=world)
    evaluation = Evaluation(
        folder, benchmark, load_model_inputs(benchmark), group.train, job.budget, query, job.settings
    )
    # With processes that train together, the others may wait for the failed one: all of them end here.
    failed = evaluation.run(job.missing, keep_going=world.size == 1)
    if reporter is not None:
        reporter.close()
    if failed:
        seed, first = next(iter(failed.items()))
        more = f" (and {len(failed) - 1} more of its replicas failed)" if len(failed) > 1 else ""
        raise replace_error_message(type(first), f"seed {seed}: {first}{more}")


def run_all(plans: Sequence[Plan], engine: str) -> tuple[list[Run], list[Failure]]:
    """Run all missing seeds of all plans, and finish the run folders without failed replicas. Return these runs, in the
    order of `plans`, and the failures. All plans are for one device.

    Under `torchrun` all processes call this with the same arguments, and train each replica together."""
    world = get_world()
    if world.size > 1 and engine != "local":
        raise FarshiftError(f"torchrun starts the processes itself: leave --engine {engine} out")
    device = plans[0].budget.device
    require_extras()
    for plan in plans:
        plan.check()
    if estimators := sorted({plan.recipe.name for plan in plans if plan.recipe.estimator and plan.budget.steps}):
        log_message(
            f"{', '.join(estimators)}: an estimator stops by its own rule, and steps change nothing but the protocol: "
            "runs are compared with others of the same steps only"
        )
    failures: list[tuple[int, Failure]] = []
    with ExitStack() as exit_stack:
        executor = exit_stack.enter_context(open_engine(engine, Needs(device, threads=1)))
        for plan in plans:
            refuse_shortages(list_memory(plan, min(executor.workers, len(plan.seeds))), plan.title, device)
        folders = [exit_stack.enter_context(plan.begin()) for plan in plans]
        missing = [folder.missing() for folder in folders]
        if world.size > 1:
            from ..training.distributed import broadcast_from_first, join_processes

            exit_stack.enter_context(join_processes(world, device))
            missing = broadcast_from_first(missing, world)
        jobs: list[GroupJob] = []
        owners: list[Plan] = []
        for plan, folder, seeds in zip(plans, folders, missing, strict=True):
            for stale in list_fit_files(folder.path) if world.rank == 0 else ():
                stale.unlink(missing_ok=True)
            plan_jobs = _make_jobs(plan, folder, seeds, executor.workers)
            jobs, owners = jobs + plan_jobs, owners + [plan] * len(plan_jobs)
        if jobs and device == "cpu" and isinstance(executor, Local) and world.size == 1:
            exit_stack.enter_context(use_free_cores())
        with nullcontext() if isinstance(executor, Local) else watch_progress_files(jobs):
            done = 0
            for index, _, error in iterate_outcomes(executor, run_group_job, jobs):
                if error is not None:
                    failures.append((index, Failure(owners[index], error)))
                    log_message(f"{owners[index].title}: {error}")
                done += len(jobs[index].missing)
                if len(plans) > 1 and world.rank == 0:
                    report_progress("replicas", done, sum(len(job.missing) for job in jobs))
        broken = {id(failure.plan) for _, failure in failures}
        runs = []
        for plan, folder in zip(plans, folders, strict=True):
            if id(plan) not in broken:
                runs.append(folder.finish(world))
                if world.rank == 0:
                    rmtree(folder.path / TRAINING, ignore_errors=True)
                    log_message(f"{plan.title}: {format_count(len(plan.seeds), 'seed')} done")
    return runs, [failure for _, failure in sorted(failures, key=itemgetter(0))]


def _make_jobs(plan: Plan, folder: RunFolder, missing: list[int], workers: int) -> list[GroupJob]:
    """The replica groups of a plan with replicas left to train or to predict, of the seeds `missing`."""
    if not missing:
        return []
    fits = plan.number_of_fits() * len(plan.settings)
    steps = "" if plan.recipe.estimator else f", {format_count(plan.steps, 'step')} each"
    log_message(f"{plan.title}: training {format_count(len(plan.seeds) * fits, 'replica')}{steps}")
    return [
        GroupJob(
            folder=folder.path,
            plan=folder.plan,
            recipe=plan.recipe,
            benchmark=plan.benchmark.name,
            budget=plan.budget,
            seeds=seeds,
            missing=remaining,
            settings=plan.settings,
            stack=plan.stack,
            steps=plan.steps * fits * len(seeds),
            stream=plan.benchmark.address if isinstance(plan.benchmark, StreamedBenchmark) else "",
        )
        for seeds in split_seeds(plan.seeds, workers)
        if (remaining := tuple(seed for seed in seeds if seed in missing))
    ]


def raise_first_failure(failures: Sequence[Failure]) -> None:
    """Raise the error of the first of some failures, if there is one, and say how many more there are."""
    if failures:
        first = failures[0]
        more = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
        raise replace_error_message(type(first.error), f"{first}{more}")


def make_budget(budget: str, steps: int | None = None, device: str = "cpu") -> Budget:
    """Make a budget by its name; `steps` overrides its optimiser steps."""
    if budget not in ("full", "quick"):
        raise FarshiftError(f"budget {budget!r}: use full or quick")
    check_device(device)
    return Budget(budget, steps, device)


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
    settings: Settings | None = None,
    selection: str | None = None,
    stack: int = 0,
    diagnose: str = "",
    network: str = "",
    encoder: str | None = None,
    fine_tune: str | None = None,
    augment: str = "",
    published: str = "",
    stream: str = "",
) -> Run:
    """Train the baseline `name` on the benchmark `on` and write its run folder `out`; an unfinished run is resumed.

    seeds: how many, or which (the protocol's number by default). budget: "full" or "quick"; `steps` overrides its
    optimiser steps. engine: "local", "processes" (one process a core) or "ray". settings: named settings to try;
    `selection` chooses among them, by default by the protocol's rule. stack: the most replicas to train at once; chosen
    automatically by default. diagnose: names of diagnostics, separated by commas, or "all": their values for each
    trained replica are written to the run card. network, encoder, fine_tune, augment, published, stream: see
    `RecipeOverrides`.
    """
    changes = RecipeOverrides(network, encoder or "", fine_tune or "", augment, published, stream)
    plan = make_plan(
        name,
        on,
        Path(out),
        make_budget(budget, steps, device),
        seeds=seeds,
        settings=settings,
        selection=selection,
        stack=stack,
        diagnose=diagnose,
        changes=changes,
    )
    prepare_data(plan.benchmark)
    runs, failures = run_all([plan], engine)
    raise_first_failure(failures)
    return runs[0]


def make_plan(
    name: str,
    on: str,
    out: Path,
    budget: Budget,
    seeds: int | Sequence[int] | None = None,
    settings: Settings | None = None,
    selection: str | None = None,
    stack: int = 0,
    diagnose: str = "",
    changes: RecipeOverrides = NOTHING,
) -> Plan:
    """Make the plan of what `run_baseline` runs, with its arguments. Opens no data, except to count the rows for
    published epochs."""
    benchmark, diagnostic_names = find_streamed_benchmark(on, changes.stream), parse_diagnostics(diagnose)
    recipe = changes.of(find_recipe(name), benchmark)
    numbers = list_seeds(seeds, benchmark, budget.name)
    plan = Plan(recipe, benchmark, budget, numbers, out, check_settings(settings), selection, stack, diagnostic_names)
    plan.check_stream()
    return plan


@contextmanager
def watch_progress_files(jobs: Sequence[GroupJob]) -> Iterator[None]:
    """Report the progress of jobs in other processes while the context lasts, by their labels."""
    steps: dict[str, dict[Path, int]] = {}
    for job in jobs:
        steps.setdefault(job.label, {})[job.file] = job.steps
    done_by_path: dict[Path, int] = {}

    def follow() -> None:
        for label, of_label in steps.items():
            report_file_progress(label, of_label, done_by_path)

    with run_every(0.5, follow):
        yield


def report_file_progress(label: str, steps: Mapping[Path, int], done_by_path: dict[Path, int]) -> None:
    """Report once what the files say. done_by_path: the steps done so far; a file that is gone has no steps left."""
    losses = []
    for path, total in steps.items():
        now = read_fit_progress(path)
        if now is not None:
            done_by_path[path] = now.done
            losses += [now.loss] if now.loss is not None else []
        elif path in done_by_path:
            done_by_path[path] = total
    if done := sum(done_by_path.get(path, 0) for path in steps):
        note = f"loss {sum(losses) / len(losses):.4g}" if losses else ""
        report_progress(label, done, sum(steps.values()), note)
