"""The quickstart: from a fresh machine to a scored leaderboard entry.

One split of each kind, a plain baseline and one designed for the shift on each, through the harness, the scorer and an
embedded board, with the protocol's quick budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..baselines.recipe import Recipe, load_recipes
from ..baselines.running.plan import Plan, compute_code_digest
from ..baselines.running.sweep import raise_first_failure, require_extras, run_all
from ..benchmarks.benchmark import Benchmark, load_suite
from ..benchmarks.harness.evaluate import list_seeds
from ..benchmarks.model import Budget
from ..benchmarks.model_inputs.load import load_model_inputs
from ..benchmarks.runs.run import Run, read_run
from ..benchmarks.scoring.score import score
from ..core.canonical import compute_identity
from ..core.clock import Stopwatch
from ..core.errors import FarshiftError, MissingExtra, Unavailable
from ..core.files import get_lock_path, hold_lock
from ..core.progress import log_message
from ..leaderboard.board import Board
from ..leaderboard.operations.submit import declare_references, submit_runs
from ..leaderboard.publish.site import build_site
from ..leaderboard.submission.pack import pack_runs
from ..splits.manifest import KINDS
from .output import format_estimate, print_line, print_table

BUDGET = "quick"
SEQUENCE_STEPS = 500
"""Optimiser steps of networks that read sequences, in place of the 650 to 1,200 of their quick budgets: with them the
quickstart would take twice as long."""

ROLES = ("plain", "helps")


@dataclass(frozen=True)
class Result:
    """The result of the quickstart: rows of its table, skipped benchmarks with reasons, and the path of the board."""

    rows: list[dict[str, Any]]
    left_out: list[dict[str, str]]
    board: Path
    page: Path
    seconds: float

    def record(self) -> dict[str, Any]:
        return {"budget": BUDGET} | vars(self) | {"board": str(self.board), "page": str(self.page)}


def run_quickstart(out: Path, engine: str = "processes", steps: int | None = None) -> Result:
    """Run the quickstart suite into `out/runs` and `out/board`. Finished runs are reused.

    `steps` replaces all optimiser steps (to test the pipeline, not to compare)."""
    watch = Stopwatch()
    _require_extras()
    with hold_lock(get_lock_path(out), f"the quickstart in {out}"):
        return _run_benchmarks(out, engine, steps, watch)


def _run_benchmarks(out: Path, engine: str, steps: int | None, watch: Stopwatch) -> Result:
    kinds: list[list[Plan]] = []
    left_out: list[dict[str, str]] = []
    for benchmark in sorted(load_suite("quickstart"), key=lambda benchmark: KINDS.index(benchmark.kind)):
        recipes = _choose_recipes(benchmark)
        try:
            if not recipes:
                raise Unavailable("it needs one baseline with the role plain and one with the role helps")
            load_model_inputs(benchmark)
        except Unavailable as error:
            log_message(f"skipped {benchmark.name} ({benchmark.kind}): {error}")
            left_out.append({"benchmark": benchmark.name, "kind": benchmark.kind, "why": str(error)})
            continue
        counts = ", ".join(f"{pin.rows:,} {name}" for name, pin in benchmark.manifest.definition.parts.items())
        log_message(f"pulled and verified {benchmark.manifest.full_name} ({benchmark.kind}): {counts}")
        kinds.append([_make_plan(benchmark, recipe, out, steps) for recipe in recipes])
    if not kinds:
        raise FarshiftError("quickstart: no source is available; the lines above say why")
    _announce_plans([plan for plans in kinds for plan in plans], out)
    runs: list[Run] = []
    rows: list[dict[str, Any]] = []
    for plans in kinds:
        benchmark_runs = _train_plans(plans, engine)
        runs += benchmark_runs
        for plan, run in zip(plans, benchmark_runs, strict=True):
            rows.append(_summarise_run(plan, run))
            row = rows[-1]
            scores = ", ".join(f"{name.upper()} {100 * row[name]['value']:.1f}" for name in ("id", "ood"))
            log_message(f"{row['kind']}: {row['baseline']} ({row['role']}) on {row['benchmark']}: {scores}")
    board = _submit_runs(runs, out)
    return Result(rows, left_out, board.path, build_site(board), watch.seconds())


def _require_extras() -> None:
    """Report all missing packages at once, before any work is done."""
    try:
        require_extras()
        for name in ("jinja2", "sqlalchemy", "cryptography"):
            import_module(name)
    except (MissingExtra, ImportError) as error:
        raise MissingExtra("the quickstart", "quickstart") from error


def _choose_recipes(benchmark: Benchmark) -> list[Recipe]:
    """The recipes with a role on a benchmark: the plain one, then the one designed for the shift."""
    candidates_by_role = [
        [recipe for recipe in load_recipes().values() if recipe.role_on(benchmark.name) == role] for role in ROLES
    ]
    return [candidates[0] for candidates in candidates_by_role] if all(candidates_by_role) else []


def _make_plan(benchmark: Benchmark, recipe: Recipe, out: Path, steps: int | None) -> Plan:
    if steps is None and benchmark.task.type == "sequence":
        steps = SEQUENCE_STEPS
    seeds = list_seeds(None, benchmark, BUDGET)
    # The folder's name has a digest of all that determines the result: changed code never reuses an old run.
    key = compute_identity([benchmark.identity(BUDGET, steps), compute_code_digest(recipe), seeds])[:8]
    folder = out / "runs" / benchmark.name.replace("/", "-") / f"{recipe.name}-{key}"
    return Plan(recipe, benchmark, Budget(BUDGET, steps), seeds, folder)


def _announce_plans(plans: list[Plan], out: Path) -> None:
    todo = [plan for plan in plans if not _is_finished(plan)]
    if len(todo) < len(plans):
        log_message(f"reusing {len(plans) - len(todo)} of {len(plans)} runs, finished in {out / 'runs'}")
    if todo:
        count = sum(len(plan.seeds) for plan in todo)
        log_message(f"training {count} replicas (quick budget; {SEQUENCE_STEPS} steps for sequence tasks)")


def _is_finished(plan: Plan) -> bool:
    return (plan.out / "run.toml").exists()


def _train_plans(plans: list[Plan], engine: str) -> list[Run]:
    """The runs of a benchmark's plans: those that are finished, and the others, trained beside each other."""
    todo = [plan for plan in plans if not _is_finished(plan)]
    # Networks that read sequences train for a minute; the others for little longer than it takes to start processes.
    if todo:
        _, failures = run_all(todo, engine if todo[0].benchmark.task.type == "sequence" else "local")
        raise_first_failure(failures)
    return [read_run(plan.out) for plan in plans]


def _submit_runs(runs: Iterable[Run], out: Path) -> Board:
    """Submit the runs that the embedded board does not have yet."""
    folder = out / "board"
    board = Board(folder) if (folder / "board.toml").exists() else Board.init(folder, "Quickstart board")
    known = {item["run_digest"] for record in board.ledger.records() for item in record.body.get("entries", [])}
    new = [run for run in runs if run.digest not in known]
    if new:
        file = pack_runs(new, out / "submission.zip", team="quickstart")
        entries, _ = submit_runs(board, file)
        declare_references(board, entries)
        log_message(f"submitted {len(entries)} runs to {board.path}, scored from their predictions")
    else:
        log_message(f"all runs are already on {board.path}")
    return board


def _summarise_run(plan: Plan, run: Run) -> dict[str, Any]:
    scores = score(run)
    memorised = scores.views.get("memorised")
    return {
        "kind": plan.benchmark.kind,
        "benchmark": plan.benchmark.name,
        "baseline": plan.recipe.name,
        "role": plan.recipe.role_on(plan.benchmark.name),
        "seeds": len(scores.seeds),
        "steps": plan.budget.steps,
        "metric": scores.metric,
        "id": scores.id.to_dict(),
        "ood": scores.ood.to_dict(),
        "gap": scores.gap.to_dict(),
        "memorised": None if memorised is None else memorised.to_dict(),
        "audit": plan.benchmark.manifest.audit_summary(),
        "run": str(run.path),
    }


def print_quickstart(result: Result, out: Path) -> None:
    """Print the table of the quickstart, and where to find its runs and its board."""
    columns = ["kind", "benchmark", "baseline", "role", "id", "ood", "gap", "memorised"]
    estimates = columns[4:]
    rows = [[format_estimate(row[name]) if name in estimates else row[name] for name in columns] for row in result.rows]
    seeds = " or ".join(str(count) for count in sorted({row["seeds"] for row in result.rows}))
    short = sorted({(row["steps"], row["benchmark"]) for row in result.rows if row["steps"] is not None})
    steps = ", ".join(f"{steps} on {benchmark}" for steps, benchmark in short)
    print_table(
        f"Quick budget: fewer steps than a full run{f' ({steps})' if steps else ''}, {seeds} seeds. Scores in percent.",
        [*columns[:4], "ID", "OOD", "gap = ID - OOD", "memorised"],
        rows,
        "Brackets are 95 % t intervals over test rows and training seeds. Corrupted-label: OOD is the share of\n"
        "wrongly labelled training rows predicted correctly, memorised the share predicted with the wrong label.",
    )
    for name, audit in {row["benchmark"]: row["audit"] for row in result.rows if "weak" in row["audit"]}.items():
        print_line(f"{name}: {audit}.")
    for item in result.left_out:
        print_line(f"skipped: {item['benchmark']} ({item['kind']}): {item['why']}")
    print_line(f"{result.seconds:.0f} s. Runs: {out / 'runs'}. Board: {result.board}. Open {result.page.resolve()}")
