"""`farshift run`, and with `--dry-run` an estimate of its cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ..core.listings.plural import format_count
from .options import with_options
from .runs import BudgetName, Device, Seeds, Selection, Steps, print_scores, read_settings
from .terminal import Json, emit_json, forbid_network, print_block, print_line, print_note, print_table, show_progress

if TYPE_CHECKING:
    from ..baselines.running.changes import RecipeOverrides
    from ..baselines.running.forecast import Forecast
    from ..baselines.running.plan import Plan
    from ..benchmarks.model import Budget

Named = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Argument(
        metavar="BASELINE",
        help="Baseline names, as printed by farshift baselines list (default with --suite: all that apply to a "
        "benchmark).",
    ),
]
On = Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="Benchmark name, such as scan/length.")]
Suite = Annotated[
    str,
    typer.Option(
        "--suite", metavar="SUITE", help="Suite, such as core or full: run on all its benchmarks instead of --on."
    ),
]
Out = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--out", metavar="DIR", help="Run folder to write; for several runs, their parent folder."),
]
Engine = Annotated[str, typer.Option("--engine", metavar="ENGINE", help="Execution engine: local, processes or ray.")]
Settings = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--settings",
        metavar="FILE",
        help="TOML file with one table of hyperparameters per setting; every setting is trained.",
    ),
]
Search = Annotated[
    int,
    typer.Option(
        "--search",
        min=0,
        metavar="N",
        help="Number of settings to sample at random from the algorithm's search space; the first is the default "
        "setting.",
    ),
]
Stack = Annotated[
    int,
    typer.Option(
        "--stack",
        min=0,
        metavar="K",
        help="Maximum number of replicas (one seed of one setting each) trained together; 0 for automatic.",
    ),
]
Diagnose = Annotated[
    str,
    typer.Option(
        "--diagnose",
        metavar="D,D",
        help="Diagnostics to compute for the trained replicas, separated by commas, such as coherence,sharpness, "
        "or all (default: none).",
    ),
]
Network = Annotated[
    str,
    typer.Option(
        "--network",
        metavar="NAME",
        help="Network, as printed by farshift baselines networks (default: the baseline's).",
    ),
]
Encoder = Annotated[
    str,
    typer.Option(
        "--encoder",
        metavar="MODEL",
        help="Train on features computed once with a frozen Hugging Face transformers model: org/name or "
        "org/name@revision on the Hub, or ./folder.",
    ),
]
FineTune = Annotated[
    str,
    typer.Option(
        "--fine-tune", metavar="MODEL", help="Fine-tune a Hugging Face transformers model, named as for --encoder."
    ),
]
Augment = Annotated[
    str,
    typer.Option(
        "--augment",
        metavar="NAME",
        help="Data augmentation in training: NAME[+NAME..][,setting=value..], such as randaugment,magnitude=5 "
        "(default: the baseline's).",
    ),
]

Published = Annotated[
    str,
    typer.Option(
        "--published",
        metavar="NAME",
        help="Train with the published settings of domainbed or wilds, as printed by farshift baselines list "
        "--published.",
    ),
]

Stream = Annotated[
    str,
    typer.Option(
        "--stream",
        metavar="ADDRESS",
        help="Folder or URL (https:// or hf://) of WebDataset shards or Parquet files, from which to stream images "
        "or audio instead of caching them; {part} is replaced by the name of each part.",
    ),
]


@dataclass(frozen=True)
class RunOptions:
    """The arguments of `run`."""

    baselines: Named = None
    on: On = ""
    suite: Suite = ""
    out: Out = None
    seeds: Seeds = None
    device: Device = "cpu"
    engine: Engine = "local"
    budget: BudgetName = "full"
    steps: Steps = None
    settings: Settings = None
    search: Search = 0
    selection: Selection = None
    stack: Stack = 0
    diagnose: Diagnose = ""
    network: Network = ""
    encoder: Encoder = ""
    fine_tune: FineTune = ""
    augment: Augment = ""
    published: Published = ""
    stream: Stream = ""

    @property
    def names(self) -> list[str]:
        return self.baselines or []

    @property
    def changes(self) -> RecipeOverrides:
        """The changes to the shipped recipes."""
        from ..baselines.running.changes import RecipeOverrides

        return RecipeOverrides(self.network, self.encoder, self.fine_tune, self.augment, self.published, self.stream)

    def plans(self, out: Path) -> list[Plan]:
        """The plans of all runs, each in its own folder of `out`; a single run uses `out` itself. Refuses options
        that exclude each other; opens no data."""
        from ..baselines.running.suite import make_suite_plans
        from ..baselines.running.sweep import make_budget, make_plans
        from ..core.errors import FarshiftError

        if bool(self.on) == bool(self.suite) or (self.on and not self.names):
            raise FarshiftError(
                "run: name a baseline and its benchmark (farshift run mlp --on vowel/speakers), or a suite "
                "(--suite core)"
            )
        budget = make_budget(self.budget, self.steps, self.device)
        if self.suite:
            if self.settings or self.search or self.selection:
                raise FarshiftError("run --suite: --settings, --search and --selection go with one benchmark (--on)")
            if self.diagnose:
                raise FarshiftError("run --suite: --diagnose goes with one benchmark (--on)")
            if options := [f"--{name.replace('_', '-')}" for name, value in vars(self.changes).items() if value]:
                raise FarshiftError(f"run --suite: {', '.join(options)} goes with one benchmark (--on)")
            return make_suite_plans(self.suite, out, self.names, budget, self.seeds, self.stack)
        if len(self.names) > 1:
            if self.settings or self.diagnose:
                raise FarshiftError("run: --settings and --diagnose go with one baseline")
            if self.search:
                return [self._plan_one(name, out / name, budget) for name in dict.fromkeys(self.names)]
            return make_plans(self.names, self.on, out, budget, self.seeds, self.stack, self.selection, self.changes)
        return [self._plan_one(self.names[0], out, budget)]

    def _plan_one(self, name: str, out: Path, budget: Budget) -> Plan:
        """Plan one baseline, with its settings or its search."""
        from ..baselines.recipe import find_recipe
        from ..baselines.running.search import draw_settings
        from ..baselines.running.sweep import make_plan
        from ..benchmarks.model_inputs.streamed import find_streamed_benchmark

        chosen = read_settings(self.settings)
        if self.search:
            changed_recipe = self.changes.of(find_recipe(name), find_streamed_benchmark(self.on, self.stream))
            chosen = (chosen or {}) | draw_settings(name, self.on, self.search, changed_recipe)
        plan_options = chosen, self.selection, self.stack, self.diagnose, self.changes
        return make_plan(name, self.on, out, budget, self.seeds, *plan_options)


DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only estimate steps, rows, disk, memory and time, by timing a few training steps and predictions on "
        "this machine. Nothing is downloaded or written to --out. Exit code 2 if the run would not fit into "
        "memory or on the disk.",
    ),
]


@with_options(RunOptions)
def run(options: RunOptions, dry_run: DryRun = False, json: Json = False) -> None:
    """Train baselines on a benchmark or a suite, evaluate them and score them.

    Several baselines on one benchmark get one run folder each, DIR/BASELINE. After an interruption, repeat the command
    to resume.

    If a replica (one seed of one setting) fails, the others continue. Of several runs, those that finished are scored,
    failures are listed, and the exit code is 1. A run that would not fit into memory or on the disk is refused before
    it starts (see --dry-run)."""
    if dry_run:
        return _print_estimates(options, json)
    from ..baselines.running.resources import prepare_data
    from ..baselines.running.sweep import raise_first_failure, run_all
    from ..core.errors import FarshiftError
    from ..core.world import get_world

    if options.out is None:
        raise FarshiftError("run: name a folder to write (--out DIR)")
    with show_progress():
        plans = options.plans(options.out)
        if options.on:
            prepare_data(plans[0].benchmark)
    if options.suite or len(options.names) > 1:
        return _run_several_plans(plans, options.out, options.engine, json)
    with show_progress():
        runs, failures = run_all(plans, options.engine)
        raise_first_failure(failures)
    if get_world().rank == 0:
        print_scores(runs[0], json)


def _run_several_plans(plans: list[Plan], out: Path, engine: str, json: bool) -> None:
    """Score the runs that finish; failed replicas are listed on stderr, and the exit code is then 1."""
    from ..baselines.running.sweep import run_all
    from ..benchmarks.scoring.score import score
    from ..core.world import get_world

    with show_progress():
        runs, failures = run_all(plans, engine)
        scores = [score(run) for run in runs] if get_world().rank == 0 else []
    if json and get_world().rank == 0:
        emit_json([item.report() for item in scores])
    elif get_world().rank == 0:
        for item in scores:
            print_block(str(item))
        print_line(f"{format_count(len(scores), 'run')}: {out}")
    for failure in failures:
        print_note(f"failed: {failure}")
    if failures:
        raise typer.Exit(1)


def _print_estimates(options: RunOptions, json: bool) -> None:
    """Print the estimated cost of each run; `FarshiftError` if one does not fit, with what to change."""
    from ..baselines.running.forecast import estimate_cost, refuse_problems
    from ..baselines.running.sweep import require_extras
    from ..core.errors import FarshiftError

    forbid_network(True)
    with show_progress():
        if options.stream:
            raise FarshiftError("run: --dry-run does not support --stream: leave one of them out")
        require_extras()
        forecasts = [estimate_cost(item, options.engine) for item in options.plans(options.out or Path("runs"))]
    if json:
        emit_json([item.to_dict() for item in forecasts])
    elif len(forecasts) == 1:
        _print_estimate(forecasts[0])
    else:
        _print_estimate_table(forecasts)
    refuse_problems(forecasts)


def _print_estimate(estimate: Forecast) -> None:
    from ..baselines.running.forecast_text import format_cost_rows

    print_table(
        f"{estimate.plan.title}, {estimate.plan.budget.name} budget, {estimate.plan.budget.device}",
        ["resource", "estimate"],
        format_cost_rows(estimate),
    )


def _print_estimate_table(estimates: list[Forecast]) -> None:
    from ..baselines.running.forecast_text import format_brief_row
    from ..core.clock import format_duration

    rows = [format_brief_row(estimate) for estimate in estimates]
    known = [estimate.seconds["all"] for estimate in estimates if "all" in estimate.seconds]
    columns = ["baseline", "benchmark", "replicas", "steps", "memory", "disk", "time"]
    print_table(
        "",
        columns,
        rows,
        f"Estimated total: {format_duration(sum(known))} ({len(known)} of {len(estimates)} measured).",
    )
