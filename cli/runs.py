"""`farshift evaluate`, `score` and `status`, and the options that commands on runs share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..core.errors import FarshiftError
from .terminal import Json, emit_json, exit_with_error, print_block, print_line, print_table, show_progress

app = typer.Typer()

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Run folder to write; an unfinished run is resumed.")]
On = Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="Benchmark name, such as scan/length.")]
Seeds = Annotated[
    Optional[int],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option("--seeds", min=1, help="Number of seeds (default: the protocol's)."),
]
BudgetName = Annotated[
    str, typer.Option("--budget", metavar="full|quick", help="Training budget of the protocol: full or quick.")
]
Steps = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--steps", min=1, help="Number of optimiser steps (default: the budget's)."),
]
Device = Annotated[str, typer.Option("--device", metavar="DEVICE", help="Device: cpu, cuda, cuda:1 ..")]
Settings = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--settings",
        metavar="FILE",
        help="TOML file with one table of hyperparameters per setting, passed to the model factory; every setting "
        "is trained.",
    ),
]
Options = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--option", metavar="KEY=VALUE", help="Option of an hf:, openai: or cmd: model. May be repeated."),
]
Selection = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--selection",
        metavar="RULE",
        help="Rule that selects among checkpoints and settings, such as last or id_val (default: the protocol's).",
    ),
]
Rescored = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--selection",
        metavar="RULE",
        help="Rule, permitted by the protocol, that selects among checkpoints and settings, such as last or id_val "
        "(default: the run's).",
    ),
]
Latex = Annotated[bool, typer.Option("--latex", help="Print a LaTeX table.")]
Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="Title of the figure.")]
NoNote = Annotated[
    bool,
    typer.Option("--no-note", help="Print the explanatory note to stdout instead of drawing it below the figure."),
]
Caption = Annotated[str, typer.Option("--caption", metavar="TEXT", help="Caption of the LaTeX table.")]
Label = Annotated[str, typer.Option("--label", metavar="LABEL", help="Label of the LaTeX table, such as tab:results.")]
_RECORDED = re.compile(r"baseline:(?P<name>[^@:]+)(:(?P<budget>[^@]*))?@(?P<benchmark>.+)")


def parse_run_path(text: str) -> Path:
    """A run's folder as the command line names it: a path, or `baseline:NAME@BENCHMARK` for a recorded result, which
    is `baseline:NAME:full@BENCHMARK` under the budget full."""
    if not text.startswith("baseline:"):
        return Path(text)
    from ..baselines.running.results import find_recorded_run as find

    recorded = _RECORDED.fullmatch(text)
    if recorded is None:
        raise FarshiftError(_suggest_recorded(text))
    return find(recorded["benchmark"], recorded["name"], budget=recorded["budget"] or "quick").path


def _suggest_recorded(text: str) -> str:
    """The message for a recorded result that is named without its benchmark, with an existing one as an example."""
    from ..baselines.running.results import list_results

    name = text.removeprefix("baseline:").strip("@")
    on = next((benchmark for benchmark, recorded_name in list_results() if recorded_name == name), "")
    example = f", such as baseline:{name}@{on}" if on else " (farshift baselines results lists them)"
    return f"{text}: write baseline:NAME@BENCHMARK for a recorded result{example}"


NAMED_RUN = (
    "Folder of a finished run, or a recorded result: baseline:NAME@BENCHMARK (quick budget) or "
    "baseline:NAME:full@BENCHMARK (full budget)."
)
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help=NAMED_RUN, parser=parse_run_path)]


@app.command()
def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Model: file.py:factory, package.module:attribute, hf:MODEL, openai:MODEL@URL, "
            "torch:WEIGHTS@FILE.py:FACTORY or cmd:COMMAND.",
        ),
    ],
    on: On,
    out: Out,
    seeds: Seeds = None,
    device: Device = "cpu",
    budget: BudgetName = "full",
    steps: Steps = None,
    name: Annotated[
        str, typer.Option("--name", help="Model name on the run card (default: derived from the model).")
    ] = "",
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Number of rows passed to predict at a time.")
    ] = 512,
    selection: Selection = None,
    settings: Settings = None,
    option: Options = None,
    time_limit: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            "--time-limit",
            min=0,
            metavar="SECONDS",
            help="Time limit per batch in seconds; 0 for none (default: 600; openai: and cmd: models use their own "
            "time limit).",
        ),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--limit",
            min=1,
            metavar="N",
            help="Predict only N rows of each part, as a trial; boards do not accept such a run.",
        ),
    ] = None,
    no_score: Annotated[
        bool,
        typer.Option("--no-score", help="Score later, with farshift score (scoring reads the test labels)."),
    ] = False,
    json: Json = False,
) -> None:
    """Evaluate your own model on a benchmark and score it."""
    from ..benchmarks.harness.evaluate import evaluate as go
    from ..benchmarks.harness.model_spec import find_model, read_options
    from ..core.world import get_world

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
    with show_progress():
        loaded_model, code = find_model(model, read_options(option or []))
        hung = f"predict did not return in time and cannot be interrupted; {_RESUME_HINT}"
        done = go(loaded_model, on, out=out, code=code, on_hang=lambda: exit_with_error(hung), **how)
    if get_world().rank != 0:
        return
    if no_score and json:
        emit_json({"run": str(done.path), "digest": done.digest})
    elif no_score:
        print_line(f"run: {done.path}")
    else:
        print_scores(done, json)


_RESUME_HINT = "finished predictions are kept; repeat the command to resume"


def read_settings(path: Path | None) -> dict[str, Any] | None:
    """Named settings from a TOML file; None where there is no file."""
    from ..core.errors import BadDefinition
    from ..core.plugins import read_toml

    if path is None:
        return None
    settings = read_toml(path)
    if not settings or not all(isinstance(values, dict) for values in settings.values()):
        raise BadDefinition(f"{path}: write one table per setting, such as [small] with hidden = 64 under it")
    return settings


@app.command()
def score(runs: Runs, selection: Rescored = None, json: Json = False) -> None:
    """Score finished runs from their predictions.

    A submission file (.zip) is accepted too: each of its runs is scored as a board would score it."""
    from ..benchmarks.scoring.score import score as go
    from ..leaderboard.operations.submit import score_submission

    with show_progress():
        scores = [
            run_score
            for path in runs
            for run_score in (score_submission(path, selection) if path.is_file() else [go(path, selection)])
        ]
    if json:
        return emit_json([item.report() for item in scores])
    for item in scores:
        print_block(str(item))


def refuse_latex_options(latex: bool, json: bool, caption: str, label: str) -> None:
    """Refuse options of LaTeX tables without --latex."""
    if latex and json:
        raise FarshiftError("choose one of --json and --latex")
    for name, value in (("caption", caption), ("label", label)):
        if value and not latex:
            raise FarshiftError(f"--{name} applies to LaTeX tables: add --latex, or leave it out")


def refuse_figure_options(command: str, needs: str, title: str, no_note: bool) -> None:
    """Refuse options of figures without a figure."""
    for name, value in (("--title", title), ("--no-note", no_note)):
        if value:
            raise FarshiftError(f"{command}: {name} applies to figures: add {needs}, or leave it out")


@app.command()
def status(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders, or their parent folders.")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Update the table every second until no run is active.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the progress of runs: seeds, training, predictions, throughput, time left."""
    from ..benchmarks.runs.status import list_statuses
    from .terminal import choose_columns, print_live_table

    columns = ["run", "benchmark", "model", "state", "seeds", "trained", "predicted", "rows/s", "time left"]
    run_statuses = list_statuses(folders)
    if json and not watch:
        return emit_json([item.to_dict() for item in run_statuses])
    column_numbers = choose_columns(columns, _make_status_rows(run_statuses)[0], spare=("model", "benchmark", "rows/s"))
    headings = [columns[number] for number in column_numbers]
    if watch:
        return print_live_table(headings, lambda: _make_status_rows(list_statuses(folders), column_numbers))
    left_out = [name for name in columns if name not in headings]
    caption = f"Hidden in a narrow terminal: {', '.join(left_out)}." if left_out else ""
    print_table("", headings, _make_status_rows(run_statuses, column_numbers)[0], caption)


def _make_status_rows(
    run_statuses: list[Any], column_numbers: Sequence[int] = range(9)
) -> tuple[list[list[Any]], bool]:
    """The rows of the table, in the selected columns, and whether no run is active."""
    rows = [[cells[number] for number in column_numbers] for cells in (item.cells() for item in run_statuses)]
    return rows, all(item.state != "running" for item in run_statuses)


def print_scores(done: Any, json: bool) -> None:
    """Print a finished run's scores, the chosen candidates and the run's folder."""
    from ..benchmarks.scoring.apply_selection import list_chosen_candidates
    from ..benchmarks.scoring.score import score as go

    run_score = go(done)
    chosen = list_chosen_candidates(done, run_score)
    if json:
        chosen_record = {"chosen": [candidate.to_dict() for candidate in chosen]} if chosen else {}
        return emit_json({"run": str(done.path), "digest": done.digest, **chosen_record, "score": run_score.report()})
    print_block(str(run_score))
    for candidate in chosen:
        print_line(f"chosen by {run_score.selection}: {candidate}")
    print_line(f"run: {done.path}")
