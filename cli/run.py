"""`farshift run`, and with `--dry-run` what it would take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ..core.listings.plural import counted
from .options import taking
from .runs import BudgetName, Device, Seeds, Selection, Steps, print_scored, read_settings
from .terminal import Json, block, emit_json, go_offline, line, note, table, watched

if TYPE_CHECKING:
    from ..baselines.running.changes import Changes
    from ..baselines.running.forecast import Forecast
    from ..baselines.running.plan import Plan

Named = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Argument(metavar="[BASELINE]...", help="Names of baselines: farshift baselines list."),
]
On = Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="The benchmark's name, such as scan/length.")]
Suite = Annotated[str, typer.Option("--suite", metavar="S", help="All benchmarks of a suite instead: core ..")]
Out = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--out", metavar="DIR", help="The run folder to write, or the folder of a suite's runs."),
]
Engine = Annotated[str, typer.Option("--engine", metavar="E", help="local, processes or ray.")]
Settings = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--settings", metavar="FILE", help="TOML: one table per setting; all are trained."),
]
Search = Annotated[int, typer.Option("--search", min=0, metavar="N", help="N random draws of the search space.")]
Stack = Annotated[
    int, typer.Option("--stack", min=0, metavar="K", help="The most replicas trained at once; 0: automatic.")
]
Diagnose = Annotated[
    str, typer.Option("--diagnose", metavar="D,D", help="Measure trained replicas: coherence,sharpness .. or all.")
]
Network = Annotated[
    str,
    typer.Option(
        "--network", metavar="NAME", help="Train this network in place of the recipe's (farshift baselines networks)."
    ),
]
Encoder = Annotated[
    str,
    typer.Option(
        "--encoder",
        metavar="MODEL",
        help="Train on features of a frozen model of transformers, made once for all: org/name[@revision] of the "
        "Hub, or ./folder.",
    ),
]
FineTune = Annotated[
    str, typer.Option("--fine-tune", metavar="MODEL", help="Train a model of transformers further instead.")
]
Augment = Annotated[
    str,
    typer.Option(
        "--augment",
        metavar="A",
        help="Augment training rows: NAME[+NAME..][,setting=value..], such as randaugment,magnitude=5.",
    ),
]

Published = Annotated[
    str,
    typer.Option(
        "--published",
        metavar="P",
        help="Train with published settings: domainbed, wilds (farshift baselines list --published).",
    ),
]

Stream = Annotated[
    str,
    typer.Option(
        "--stream",
        metavar="ADDRESS",
        help="Read pictures or sounds where they lie instead of having them in the cache: exports, shards or Parquet "
        "files in a folder, on the web, on the Hub; {part} stands for a part's name.",
    ),
]


@dataclass(frozen=True)
class Asked:
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
    def changes(self) -> Changes:
        """What is to be otherwise than in the shipped recipes."""
        from ..baselines.running.changes import Changes

        return Changes(self.network, self.encoder, self.fine_tune, self.augment, self.published, self.stream)

    def plans(self, out: Path) -> list[Plan]:
        """What is to be run, each in a folder of its own in `out`, or in `out` itself where it is one alone. Refuses
        what does not go together; opens no data."""
        from ..baselines.recipe import recipe
        from ..baselines.running.search import drawn
        from ..baselines.running.suite import suite_plans
        from ..baselines.running.sweep import plan_of, plans_on, spend
        from ..benchmarks.blind.streamed import found
        from ..core.errors import FarshiftError

        if bool(self.on) == bool(self.suite) or (self.on and not self.names):
            raise FarshiftError(
                "run: name a baseline and its benchmark (farshift run mlp --on vowel/speakers), or a suite "
                "(--suite core)"
            )
        budget = spend(self.budget, self.steps, self.device)
        if self.suite:
            if self.settings or self.search or self.selection:
                raise FarshiftError("run --suite: --settings, --search and --selection go with one benchmark (--on)")
            if self.diagnose:
                raise FarshiftError("run --suite: --diagnose goes with one benchmark (--on)")
            if given := [f"--{name.replace('_', '-')}" for name, value in vars(self.changes).items() if value]:
                raise FarshiftError(f"run --suite: {', '.join(given)} goes with one benchmark (--on)")
            return suite_plans(self.suite, out, self.names, budget, self.seeds, self.stack)
        if len(self.names) > 1:
            if self.settings or self.search or self.diagnose:
                raise FarshiftError("run: --settings, --search and --diagnose go with one baseline")
            return plans_on(self.names, self.on, out, budget, self.seeds, self.stack, self.selection, self.changes)
        (name,) = self.names
        chosen = read_settings(self.settings)
        if self.search:
            made = self.changes.of(recipe(name), found(self.on, self.stream))
            chosen = (chosen or {}) | drawn(name, self.on, self.search, made)
        more = chosen, self.selection, self.stack, self.diagnose, self.changes
        return [plan_of(name, self.on, out, budget, self.seeds, *more)]


DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print what the run would take (steps, rows, disk, memory, time) and train nothing. A few real steps, "
        "decodings and answers are timed on this machine; nothing is downloaded or written to --out. Exit code 2 where "
        "it does not fit.",
    ),
]


@taking(Asked)
def run(asked: Asked, dry_run: DryRun = False, json: Json = False) -> None:
    """Train baselines on a benchmark or on a whole suite, evaluate and score them. Finished work is kept.

    Several baselines on one benchmark get a run folder each, DIR/BASELINE.

    A replica that fails stops no other. Of several runs all that finished are scored, what failed is listed, and the
    exit code is then 1. What is known not to fit memory or the disk is refused before it is begun (--dry-run)."""
    if dry_run:
        return _print_estimates(asked, json)
    from ..baselines.running.needs import bring
    from ..baselines.running.sweep import run_plans
    from ..core.errors import FarshiftError
    from ..core.world import world

    if asked.out is None:
        raise FarshiftError("run: name a folder to write (--out DIR)")
    with watched():
        plans = asked.plans(asked.out)
        if asked.on:
            bring(plans[0].benchmark)
    if asked.suite or len(asked.names) > 1:
        return _run_several(plans, asked.out, asked.engine, json)
    with watched():
        (done,) = run_plans(plans, asked.engine)
    if world().rank == 0:
        print_scored(done, json)


def _run_several(plans: list[Plan], out: Path, engine: str, json: bool) -> None:
    """All that finishes is scored; where replicas failed, they are listed on stderr and the exit code is 1."""
    from ..baselines.running.sweep import run_all
    from ..benchmarks.scoring.score import score
    from ..core.world import world

    with watched():
        runs, failures = run_all(plans, engine)
        scores = [score(run) for run in runs] if world().rank == 0 else []
    if json and world().rank == 0:
        emit_json([item.report() for item in scores])
    elif world().rank == 0:
        for item in scores:
            block(str(item))
        line(f"{counted(len(scores), 'run')}: {out}")
    for failure in failures:
        note(f"failed: {failure}")
    if failures:
        raise typer.Exit(1)


def _print_estimates(asked: Asked, json: bool) -> None:
    """What each run would take; what does not fit is named with what to change, by a `FarshiftError`."""
    from ..baselines.running.forecast import forecast, refuse_problems
    from ..baselines.running.sweep import require_extras
    from ..core.errors import FarshiftError

    go_offline(True)
    with watched():
        if asked.stream:
            raise FarshiftError("run --dry-run reads nothing from elsewhere: leave --stream out")
        require_extras()
        found = [forecast(one, asked.engine) for one in asked.plans(asked.out or Path("runs"))]
    if json:
        emit_json([one.to_dict() for one in found])
    elif len(found) == 1:
        _print_one(found[0])
    else:
        _print_several(found)
    refuse_problems(found)


def _print_one(found: Forecast) -> None:
    from ..baselines.running.forecast_text import lines

    table(
        f"{found.plan.title}, {found.plan.budget.name} budget, {found.plan.budget.device}",
        ["what", "how much"],
        lines(found),
    )


def _print_several(found: list[Forecast]) -> None:
    from ..baselines.running.forecast_text import brief
    from ..core.clock import duration

    rows = [brief(one) for one in found]
    known = [one.seconds["all"] for one in found if "all" in one.seconds]
    columns = ["baseline", "benchmark", "replicas", "steps", "memory", "disk", "time"]
    table("", columns, rows, f"Together {duration(sum(known))} ({len(known)} of {len(found)} measured): an estimate.")
