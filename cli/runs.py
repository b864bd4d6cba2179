"""`farshift evaluate`, `score` and `status`, and the options that commands on runs share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..core.errors import FarshiftError
from .terminal import Json, block, emit_json, give_up, line, table, watched

app = typer.Typer()

Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The run folder to write; an unfinished run is resumed.")
]
On = Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="The benchmark's name, such as scan/length.")]
Seeds = Annotated[
    Optional[int],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option("--seeds", min=1, help="How many seeds; by default as many as the protocol requires."),
]
BudgetName = Annotated[str, typer.Option("--budget", metavar="full|quick", help="The protocol's budget.")]
Steps = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--steps", min=1, help="Optimiser steps, instead of the budget's."),
]
Device = Annotated[str, typer.Option("--device", metavar="D", help="cpu, cuda, cuda:1 ..")]
Settings = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--settings", metavar="FILE", help="TOML: one table per setting, its values for the factory."),
]
Options = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--option", metavar="KEY=VALUE", help="For hf:, openai: and cmd: models. May be repeated."),
]
Selection = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--selection", metavar="RULE", help="The rule that chooses among candidates; default: the protocol's."
    ),
]
Rescored = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--selection", metavar="RULE", help="Another rule that the protocol allows; default: the run's own."),
]
Latex = Annotated[bool, typer.Option("--latex", help="A LaTeX table on stdout.")]
Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="The title of the figure.")]
NoNote = Annotated[
    bool, typer.Option("--no-note", help="Leave out what stands beneath the figure; it is printed for the caption.")
]
Caption = Annotated[str, typer.Option("--caption", metavar="TEXT", help="The caption of a LaTeX table.")]
Label = Annotated[str, typer.Option("--label", metavar="L", help="The label of a LaTeX table, such as tab:results.")]
_RECORDED = re.compile(r"baseline:(?P<name>[^@:]+)(:(?P<budget>[^@]*))?@(?P<benchmark>.+)")


def run_path(text: str) -> Path:
    """A run's folder as the command line names it: a path, or `baseline:NAME@BENCHMARK` for a recorded result, which
    is `baseline:NAME:full@BENCHMARK` under the budget full."""
    if not text.startswith("baseline:"):
        return Path(text)
    from ..baselines.running.results import recorded as find

    recorded = _RECORDED.fullmatch(text)
    if recorded is None:
        raise FarshiftError(_of_no_benchmark(text))
    return find(recorded["benchmark"], recorded["name"], budget=recorded["budget"] or "quick").path


def _of_no_benchmark(text: str) -> str:
    """What is wrong with a recorded result that is named without its benchmark, with one that there is."""
    from ..baselines.running.results import results

    name = text.removeprefix("baseline:").strip("@")
    on = next((benchmark for benchmark, one in results() if one == name), "")
    such = f", such as baseline:{name}@{on}" if on else " (farshift baselines results lists them)"
    return f"{text}: write baseline:NAME@BENCHMARK for a recorded result{such}"


NAMED_RUN = "A finished run's folder, or baseline:NAME@BENCHMARK for a recorded result (NAME:full: of the full budget)."
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help=NAMED_RUN, parser=run_path)]


@app.command()
def evaluate(
    model: Annotated[
        str,
        typer.Argument(help="file.py:factory, package.module:attribute, hf:MODEL, openai:MODEL@URL, torch:.., cmd:.."),
    ],
    on: On,
    out: Out,
    seeds: Seeds = None,
    device: Device = "cpu",
    budget: BudgetName = "full",
    steps: Steps = None,
    name: Annotated[str, typer.Option("--name", help="The model's name on the run card.")] = "",
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Rows per call of predict.")] = 512,
    selection: Selection = None,
    settings: Settings = None,
    option: Options = None,
    time_limit: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--time-limit",
            min=0,
            metavar="SECONDS",
            help="For one batch; 0 for none. Default: 600; openai: and cmd: have their own.",
        ),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--limit", min=1, metavar="N", help="Ask only N rows of each part: a trial, never ranked."),
    ] = None,
    no_score: Annotated[
        bool, typer.Option("--no-score", help="Leave scoring, which reads labels, to `farshift score`.")
    ] = False,
    json: Json = False,
) -> None:
    """Evaluate your own model on a benchmark and score it."""
    from ..benchmarks.harness.evaluate import evaluate as go
    from ..benchmarks.harness.model_spec import find_model, read_options
    from ..core.world import world

    how: dict[str, Any] = {
        "seeds": seeds,
        "device": device,
        "budget": budget,
        "steps": steps,
        "name": name or None,
        "batch_size": batch_size,
        "selection": selection,
        "settings": read_settings(settings),
        "time_limit": time_limit,
        "limit": limit,
    }
    with watched():
        found, code = find_model(model, read_options(option or []))
        hung = f"predict did not return in time and cannot be interrupted; {_KEPT}"
        done = go(found, on, out=out, code=code, on_hang=lambda: give_up(hung), **how)
    if world().rank != 0:
        return
    if no_score and json:
        emit_json({"run": str(done.path), "digest": done.digest})
    elif no_score:
        line(f"run: {done.path}")
    else:
        print_scored(done, json)


_KEPT = "what was answered is kept, and the same command goes on"


def read_settings(path: Path | None) -> dict[str, Any] | None:
    """Named settings from a TOML file; None where there is no file."""
    from ..core.errors import BadDefinition
    from ..core.plugins import read_toml

    if path is None:
        return None
    found = read_toml(path)
    if not found or not all(isinstance(values, dict) for values in found.values()):
        raise BadDefinition(f"{path}: write one table per setting, such as [small] with hidden = 64 under it")
    return found


@app.command()
def score(runs: Runs, selection: Rescored = None, json: Json = False) -> None:
    """Score finished runs from their predictions. Of a submission (a .zip) every run, as a board scores it."""
    from ..benchmarks.scoring.score import score as go
    from ..leaderboard.operations.submit import submission_scores

    with watched():
        found = [
            one
            for path in runs
            for one in (submission_scores(path, selection) if path.is_file() else [go(path, selection)])
        ]
    if json:
        return emit_json([item.report() for item in found])
    for item in found:
        block(str(item))


def refuse_latex_options(latex: bool, json: bool, caption: str, label: str) -> None:
    """Refuse what only LaTeX tables take where none is asked for."""
    if latex and json:
        raise FarshiftError("choose one of --json and --latex")
    for name, given in (("caption", caption), ("label", label)):
        if given and not latex:
            raise FarshiftError(f"--{name} is of LaTeX tables: add --latex, or leave it out")


def refuse_figure_options(command: str, needs: str, title: str, no_note: bool) -> None:
    """Refuse what only figures take where none is asked for."""
    for name, value in (("--title", title), ("--no-note", no_note)):
        if value:
            raise FarshiftError(f"{command}: {name} is of figures: add {needs}, or leave it out")


@app.command()
def status(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders, or folders that hold some.")],
    watch: Annotated[bool, typer.Option("--watch", help="Keep the table up to date until none is running.")] = False,
    json: Json = False,
) -> None:
    """Show the progress of runs: seeds done, the share trained, rows answered, throughput, time left."""
    from ..benchmarks.runs.status import statuses
    from .terminal import kept_columns, live_table

    columns = ["run", "benchmark", "model", "state", "seeds", "trained", "answers", "rows/s", "time left"]
    found = statuses(folders)
    if json and not watch:
        return emit_json([item.to_dict() for item in found])
    kept = kept_columns(columns, _status_rows(found)[0], spare=("model", "benchmark", "rows/s"))
    shown = [columns[one] for one in kept]
    if watch:
        return live_table(shown, lambda: _status_rows(statuses(folders), kept))
    left_out = [name for name in columns if name not in shown]
    caption = f"Left out in a narrow terminal: {', '.join(left_out)}." if left_out else ""
    table("", shown, _status_rows(found, kept)[0], caption)


def _status_rows(found: list[Any], kept: Sequence[int] = range(9)) -> tuple[list[list[Any]], bool]:
    """The rows of the table, of the columns kept, and whether no run is under way."""
    rows = [[cells[one] for one in kept] for cells in (item.cells() for item in found)]
    return rows, all(item.state != "running" for item in found)


def print_scored(done: Any, json: bool) -> None:
    """A finished run's scores, what was chosen among its candidates, and where the run lies."""
    from ..benchmarks.scoring.chosen import chosen_candidates
    from ..benchmarks.scoring.score import score as go

    found = go(done)
    chosen = chosen_candidates(done, found)
    if json:
        kept = {"chosen": [one.to_dict() for one in chosen]} if chosen else {}
        return emit_json({"run": str(done.path), "digest": done.digest, **kept, "score": found.report()})
    block(str(found))
    for one in chosen:
        line(f"chosen by {found.selection}: {one}")
    line(f"run: {done.path}")
