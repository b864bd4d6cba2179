"""`farshift run` and `farshift baselines ..`: one short function a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .runs import BudgetName, Device, Runs, Seeds, Selection, Steps, print_scored, read_settings
from .terminal import Json, emit_json, line, table, view, watched

app = typer.Typer(help="Baselines: list, algorithms, networks.", no_args_is_help=True)

Named = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Argument(metavar="[BASELINE]...", help="Names of baselines: farshift baselines list."),
]


@app.command("list")
def baselines_list(json: Json = False) -> None:
    """List every baseline."""
    from ..baselines.running.listing import listing

    found = listing()
    if json:
        return emit_json(found)
    rows = [[r["name"], r["kind"], r["network"] or r["estimator"], r["algorithm"] or "", r["title"]] for r in found]
    table("", ["baseline", "kind", "network", "algorithm", "title"], rows)


@app.command("algorithms")
def baselines_algorithms(json: Json = False) -> None:
    """List every training algorithm: its kind of shift, its citation, the data it uses."""
    from ..baselines.running.listing import algorithms

    found = algorithms()
    if json:
        return emit_json(found)
    rows = [[a["name"], a["kind"], ", ".join(a["touches"]), a["title"], a["citation"]] for a in found]
    table("", ["algorithm", "kind", "looks at", "what it does", "citation"], rows)


@app.command("networks")
def baselines_networks(json: Json = False) -> None:
    """List every network."""
    from ..baselines.running.listing import networks

    found = networks()
    if json:
        return emit_json(found)
    table("", ["network", "task", "what it is"], [[n["name"], n["task"], n["title"]] for n in found])


@app.command("record")
def baselines_record(
    runs: Runs,
    to: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--to", metavar="DIR", help="Where the results go; default: the package's own."),
    ] = None,
    json: Json = False,
) -> None:
    """Store the predictions of finished baseline runs as recorded results, in a compact form, and their scores."""
    from ..baselines.running.recorded_scores import keep, rescored
    from ..baselines.running.results import HOME, record
    from ..benchmarks.runs.run import read_run

    home = to or HOME
    files = []
    with watched():
        for path in runs:
            run = read_run(path)
            files.append(record(run, home))
            keep(rescored(run.benchmark, run.model, home), home)
    if json:
        return emit_json([{"run": str(path), "file": str(file)} for path, file in zip(runs, files, strict=True)])
    for file in files:
        line(f"{file}: {file.stat().st_size:,} bytes")


@app.command("results")
def baselines_results(
    on: Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="Only this benchmark.")] = "",
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Score the predictions again. Exit code 1 where that gives another score.")
    ] = False,
    json: Json = False,
) -> None:
    """List the recorded results with their scores; best OOD score first.

    Results whose kept score is of another version are scored from their predictions, which needs their data."""
    from ..baselines.running.recorded_scores import RecordedScore, kept_scores, rescored
    from ..baselines.running.results import results
    from ..core.errors import UnknownName
    from ..core.progress import advance, say

    known = results()
    if on and on not in {benchmark for benchmark, _ in known}:
        raise UnknownName("benchmark with recorded results", on, {benchmark for benchmark, _ in known})
    asked = [pair for pair in known if on in ("", pair[0])]
    kept = {benchmark: kept_scores(benchmark) for benchmark in sorted({benchmark for benchmark, _ in asked})}
    lacking = [(benchmark, name) for benchmark, name in asked if rescore or name not in kept[benchmark]]
    found = [kept[benchmark][name] for benchmark, name in asked if (benchmark, name) not in set(lacking)]
    differ = []
    with watched():
        for place, (benchmark, name) in enumerate(lacking):
            advance("scoring", place, len(lacking))
            found.append(now := RecordedScore.of(rescored(benchmark, name)))
            before = kept[benchmark].get(name, now)
            if before.to_dict() != now.to_dict():
                differ.append(f"{name} on {benchmark}: OOD {now.ood.value:.6f}, kept as {before.ood.value:.6f}")
        advance("scoring", len(lacking), len(lacking))
    # The best of a benchmark first, whatever its metric calls better.
    found.sort(key=lambda r: (r.benchmark, r.ood.value * (-1 if r.better == "higher" else 1), r.model))
    if json:
        emit_json([r.to_dict() for r in found])
    else:
        rows = [
            [r.benchmark, r.model, *(view(one.to_dict()) for one in (r.id, r.ood, r.gap)), len(r.seeds)] for r in found
        ]
        columns = ["benchmark", "baseline", "ID", "OOD", "gap = ID - OOD", "seeds"]
        table("", columns, rows, "Brackets are 95 % t intervals over test rows and training seeds. Scores in percent.")
    if differ:
        say("\n".join(differ))
        raise typer.Exit(1)


def run(
    baselines: Named = None,
    on: Annotated[
        str, typer.Option("--on", metavar="BENCHMARK", help="The benchmark's name, such as scan/length.")
    ] = "",
    suite: Annotated[str, typer.Option("--suite", metavar="S", help="All benchmarks of a suite instead: core ..")] = "",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", metavar="DIR", help="The run folder to write, or the folder of a suite's runs."),
    ] = None,
    seeds: Seeds = None,
    device: Device = "cpu",
    engine: Annotated[str, typer.Option("--engine", metavar="E", help="local, processes or ray.")] = "local",
    budget: BudgetName = "full",
    steps: Steps = None,
    settings: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--settings", metavar="FILE", help="TOML: one table per setting; all are trained."),
    ] = None,
    search: Annotated[
        int, typer.Option("--search", min=0, metavar="N", help="N random draws of the search space.")
    ] = 0,
    selection: Selection = None,
    stack: Annotated[
        int, typer.Option("--stack", min=0, metavar="K", help="The most replicas trained at once; 0: automatic.")
    ] = 0,
    diagnose: Annotated[
        str, typer.Option("--diagnose", metavar="D,D", help="Measure trained replicas: coherence,sharpness .. or all.")
    ] = "",
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            metavar="MODEL",
            help="Train on features of a frozen model of transformers, made once for all: org/name[@revision] of the "
            "Hub, or ./folder.",
        ),
    ] = "",
    fine_tune: Annotated[
        str, typer.Option("--fine-tune", metavar="MODEL", help="Train a model of transformers further instead.")
    ] = "",
    augment: Annotated[
        str,
        typer.Option(
            "--augment",
            metavar="A",
            help="Augment training rows: NAME[+NAME..][,setting=value..], such as randaugment,magnitude=5.",
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Train baselines on a benchmark or on a whole suite, evaluate and score them. Finished work is kept.

    Several baselines on one benchmark get a run folder each, DIR/BASELINE.

    A replica that fails stops no other. Of several runs all that finished are scored, what failed is listed, and the
    exit code is then 1."""
    from ..core.errors import FarshiftError

    names = baselines or []
    if out is None:
        raise FarshiftError("run: name a folder to write (--out DIR)")
    if bool(on) == bool(suite) or (on and not names):
        raise FarshiftError(
            "run: name a baseline and its benchmark (farshift run mlp --on vowel/speakers), or a suite (--suite core)"
        )
    more: dict[str, Any] = {"budget": budget, "steps": steps, "device": device}
    more |= {"engine": engine, "seeds": seeds, "stack": stack}
    if suite:
        if settings or search or selection:
            raise FarshiftError("run --suite: --settings, --search and --selection go with one benchmark (--on)")
        if diagnose:
            raise FarshiftError("run --suite: --diagnose goes with one benchmark (--on)")
        if encoder or fine_tune:
            raise FarshiftError("run --suite: --encoder and --fine-tune go with one benchmark (--on)")
        if augment:
            raise FarshiftError("run --suite: --augment goes with one benchmark (--on)")
        return _run_suite(suite, names, out, more, json)
    if len(names) > 1:
        if settings or search or diagnose:
            raise FarshiftError("run: --settings, --search and --diagnose go with one baseline")
        return _run_several(names, on, out, selection, (encoder or None, fine_tune or None, augment), more, json)
    from ..baselines.running.search import drawn
    from ..baselines.running.sweep import run_baseline
    from ..core.world import world

    chosen = read_settings(settings)
    if search:
        chosen = (chosen or {}) | drawn(names[0], on, search)
    with watched():
        done = run_baseline(
            names[0],
            on,
            out=out,
            settings=chosen,
            selection=selection,
            diagnose=diagnose,
            encoder=encoder or None,
            fine_tune=fine_tune or None,
            augment=augment,
            **more,
        )
    if world().rank == 0:
        print_scored(done, json)


def _run_several(
    names: list[str],
    on: str,
    out: Path,
    selection: str | None,
    start: tuple[str | None, str | None, str],
    more: dict[str, Any],
    json: bool,
) -> None:
    from ..baselines.running.sweep import plans_on, spend

    with watched():
        budget = spend(more["budget"], more["steps"], more["device"])
        plans = plans_on(names, on, out, budget, more["seeds"], more["stack"], selection, *start)
    _run_plans(plans, out, more["engine"], json)


def _run_suite(suite: str, names: list[str], out: Path, more: dict[str, Any], json: bool) -> None:
    from ..baselines.running.suite import suite_plans
    from ..baselines.running.sweep import spend

    with watched():
        budget = spend(more["budget"], more["steps"], more["device"])
        plans = suite_plans(suite, out, names, budget, more["seeds"], more["stack"])
    _run_plans(plans, out, more["engine"], json)


def _run_plans(plans: list[Any], out: Path, engine: str, json: bool) -> None:
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
            line(str(item))
        line(f"{len(scores)} runs: {out}")
    for failure in failures:
        typer.echo(f"failed: {failure}", err=True)
    if failures:
        raise typer.Exit(1)
