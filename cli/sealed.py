"""`farshift board sealed ..`: unseen tests, generated from a secret seed that is committed to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ..core.errors import FarshiftError
from ..core.text import format_count
from .options import OptionalCount, command, read_settings
from .output import Columns, emit_json, exit_with_error, print_line, print_records, print_result, print_table
from .progress import show_progress

app = typer.Typer(
    help="Create, answer, verify and close sealed tests.\n\nA sealed test is a new test set generated from a secret "
    "seed. The board commits to the seed in advance, accepts answers during a window of time, and reveals the seed "
    "after the window closes.",
    no_args_is_help=True,
)


@command(app, "create")
def sealed_create(benchmark: str, board: Path, closes: str, reveals: str = "", json: bool = False) -> None:
    """Create a sealed test: commit to a secret seed, generate the test and open a window for answers.

    benchmark BENCHMARK: Benchmark for which to generate new test rows.
    --board DIR: Board folder.
    --closes TIME: Closing time of the window in UTC, such as 2026-12-01T18:00:00Z.
    --reveals TIME: Time in UTC by which the seed is revealed (default: 7 days after closing).
    """
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.seal import seal_benchmark as go

    with show_progress():
        window = go(Board(board), benchmark, closes, reveals=reveals)
    print_window(window, board, json)


@command(app, "draw")
def sealed_draw(window: str, board: str, out: Path, json: bool = False) -> None:
    """Write the sealed test of an open window: row ids and inputs, without labels.

    --board BOARD: Board folder, export or URL.
    --out DIR: Output folder.
    """
    from ..leaderboard.sealed.published import export_draw
    from ..leaderboard.storage.readers import open_board_view

    with show_progress(), open_board_view(board) as board_view:
        folder = export_draw(board_view, window, out)
    answer = f"farshift board sealed answer {folder} MODEL --team TEAM --out FILE"
    print_result(json, {"draw": str(folder)}, f"{folder}: inputs without labels. Answer them: {answer}")


@command(app, "answer")
def sealed_answer(
    draw: Path,
    model: str,
    team: str,
    out: Path,
    card: Path | None = None,
    key: Path | None = None,
    seeds: OptionalCount = None,
    budget: str = "full",
    steps: OptionalCount = None,
    device: str = "cpu",
    selection: str | None = None,
    settings: Path | None = None,
    option: list[str] | None = None,
    name: str = "",
    json: bool = False,
) -> None:
    """Answer a sealed test: train a model on the public training rows, predict the test and pack the answers.

    draw DIR: Sealed test written by sealed draw.
    model MODEL: Model, as for farshift evaluate, or baseline:NAME.
    --team: Team name, shown on the board.
    --out FILE: Answer file (zip) to write; the run folder is written beside it.
    --card FILE: Model card (TOML), as for farshift pack.
    --key FILE: Team key to sign with (default: the key created by farshift team).
    --name: Model name on the run card (default: derived from the model).
    """
    from ..leaderboard.sealed.published import read_draw
    from ..leaderboard.sealed.submit import pack_answers, predict_draw
    from ..leaderboard.submission.pack import find_default_key

    signing = find_default_key(key)
    if signing is None:
        raise FarshiftError(
            "answers to a sealed test are signed with your team key: create one with farshift team --create"
        )
    with show_progress():
        sealed_test = read_draw(draw)
        loaded_model, code, own = find_named_model(model, sealed_test.terms.benchmark, option or [])
        run = predict_draw(
            loaded_model,
            sealed_test,
            seeds=seeds,
            budget=budget,
            out=out.with_name(f"{out.stem}-run"),
            steps=steps,
            device=device,
            name=name or own,
            selection=selection,
            settings=read_settings(settings),
            code=code,
            on_hang=lambda: exit_with_error(
                "predict did not return in time and cannot be interrupted; repeat the command"
            ),
        )
        file = pack_answers(run, out, sealed_test, team, card, signing)
    record = {"file": str(file), "run": str(run.path), "window": sealed_test.terms.window, "team": team}
    submit = f"farshift board sealed submit {file} --board DIR"
    print_result(json, record, f"{file}: answers of {run.model}. Submit them: {submit}")


def find_named_model(name: str, benchmark: str, options: list[str]) -> tuple[Any, str, str | None]:
    """The model that the command line names, its code's digest, and the name of a baseline."""
    from ..benchmarks.harness.factory import find_model, read_options

    scheme, _, rest = name.partition(":")
    if scheme != "baseline":
        return *find_model(name, read_options(options)), None
    from ..baselines.baseline import make_baseline
    from ..baselines.recipe import find_recipe
    from ..baselines.running.plan import compute_code_digest

    baseline_recipe = find_recipe(rest)
    return (
        lambda seed, task: make_baseline(baseline_recipe, task, seed, benchmark),
        compute_code_digest(baseline_recipe),
        baseline_recipe.name,
    )


@command(app, "submit")
def sealed_submit(file: Path, board: str, window: str, token: str = "", json: bool = False) -> None:
    """Submit answers to an open window.

    What a server receives before the closing time counts, also if it is checked later. If this command is stopped
    while it waits for the check, repeat it. Answers are scored when the window closes.

    file FILE: Answer file written by sealed answer.
    --board DIR|URL: Board folder, or URL of a board server.
    --window WINDOW: Window name, or benchmark name for its latest window.
    """
    from ..leaderboard.sealed.submit import submit_to_board

    with show_progress():
        record = submit_to_board(board, window, file, token)
    again = "" if record["new"] else " (already on the board)"
    print_result(json, record, f"{record['window']}: answers {file} received at {record['received']}{again}")


@command(app, "close")
def sealed_close(window: str, board: Path, json: bool = False) -> None:
    """Close a window after its closing time: score every answer and reveal the seed.

    --board DIR: Board folder.
    """
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.results import make_window_results
    from ..leaderboard.sealed.seal import close_window as go

    with show_progress():
        opened = Board(board)
        window_results = make_window_results(opened, go(opened, window).name)
    emit_json(window_results) if json else print_results(window_results)


@command(app, "list")
def sealed_list(folder: Path, window: str = "", json: bool = False) -> None:
    """List the sealed tests of a board: window, state, times, number of answers.

    --window WINDOW: Show only this window, in full.
    """
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.results import list_window_results, make_window_results

    if window:
        window_results = make_window_results(Board(folder), window)
        return emit_json(window_results) if json else print_results(window_results)
    columns: Columns = {
        "window": lambda record: record["terms"]["window"],
        "state": "state",
        "closes": lambda record: record["terms"]["closes"],
        "answers": "answers",
    }
    print_records(json, list_window_results(Board(folder)), columns)


def print_window(window: Any, board: Path, json: bool) -> None:
    """Print the announcement of a window, and the profile of its test."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.results import read_profile

    profile = read_profile(Board(board), window)
    if json:
        record = {"window": window.terms.record(), "commitment": window.commitment, "opened": window.opened}
        return emit_json({**record, "profile": profile})
    print_line(f"{window.name}: open until {window.terms.closes}, commitment {window.commitment}")
    _print_profile(profile or {})
    print_line(f"Write the test for entrants: farshift board sealed draw {window.name} --board {board} --out DIR")


def _print_profile(profile: dict[str, Any]) -> None:
    rows = []
    for view, counts in profile.items():
        left = f"{counts['left_out']['rows']} of {counts['public_rows']}"
        equal = "yes" if counts["equal"] else "NO"
        rows.append([view, counts["rows"], len(counts["cells"]), equal, left])
    columns = ["view", "rows", "cells", "equal to public", "public rows left out"]
    print_table("", columns, rows)


def print_results(window_results: dict[str, Any]) -> None:
    """Print a window and, once it is closed, the scores of its answers beside the public scores."""
    from ..benchmarks.scoring.record import format_estimate
    from ..benchmarks.statistics.interval import read_interval

    terms = window_results["terms"]
    answers = format_count(window_results["answers"], "answer")
    print_line(f"{terms['window']}: {window_results['state']}, answers until {terms['closes']}, {answers}")
    if window_results["profile"] is not None:
        _print_profile(window_results["profile"])
    rows = []
    for entry in window_results["entries"]:
        if entry["n/a"]:
            rows.append([entry["team"], entry["model"], f"n/a ({entry['n/a']})", "", "", "", ""])
            continue
        score, contrast = entry["score"], entry["contrast"]
        scores = [format_estimate(read_interval(score[view])) for view in ("id", "ood")]
        differences = [_format_difference(contrast[view]) for view in ("id", "ood")]
        flags = [f"{view} {contrast[view]['flag']}" for view in ("id", "ood") if contrast[view].get("flag")]
        rows.append([entry["team"], entry["model"], *scores, *differences, ", ".join(flags)])
    if rows:
        columns = ["team", "model", "sealed ID", "sealed OOD", "ID: public - sealed", "OOD: public - sealed", "flag"]
        caption = "95 % t intervals. A flag: p < 5 % after Holm's correction over the entries."
        print_table("", columns, rows, caption)


def _format_difference(record: dict[str, Any]) -> str:
    from ..benchmarks.statistics.interval import Interval, read_interval

    known = read_interval(record)
    return f"{known.value:+.3f} [{known.low:+.3f}, {known.high:+.3f}]" if isinstance(known, Interval) else "n/a"
