"""`farshift board sealed ..`: unseen tests, generated from a secret seed that is committed to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from .options import Token
from .runs import BudgetName, Device, Options, Seeds, Selection, Settings, Steps, read_settings
from .terminal import Json, emit_json, exit_if, exit_with_error, print_line, print_table, show_progress
from .windows import print_results, print_window

if TYPE_CHECKING:
    from ..leaderboard.ledger import Record

app = typer.Typer(
    help="Create, answer, verify and close sealed tests.\n\nA sealed test is a new test set generated from a secret "
    "seed. The board commits to the seed in advance, accepts answers during a window of time, and reveals the seed "
    "after the window closes.",
    no_args_is_help=True,
)


Folder = Annotated[Path, typer.Option("--board", metavar="DIR", help="Board folder.")]
WindowName = Annotated[
    str, typer.Argument(metavar="WINDOW", help="Window name, or benchmark name for its latest window.")
]


@app.command("create")
def sealed_create(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="Benchmark for which to generate new test rows.")
    ],
    board: Folder,
    closes: Annotated[
        str,
        typer.Option(
            "--closes", metavar="TIME", help="Closing time of the window in UTC, such as 2026-12-01T18:00:00Z."
        ),
    ],
    opens: Annotated[str, typer.Option("--opens", metavar="TIME", help="Opening time of the window in UTC.")] = "now",
    reveals: Annotated[
        str,
        typer.Option(
            "--reveals",
            metavar="TIME",
            help="Time in UTC by which the seed is revealed (default: 7 days after closing).",
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Create a sealed test: commit to a secret seed, generate the test and announce a window for answers."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.seal import seal_benchmark as go

    with show_progress():
        window = go(Board(board), benchmark, opens, closes, reveals=reveals)
    print_window(window, board, json)


@app.command("draw")
def sealed_draw(
    window: WindowName,
    board: Annotated[
        str, typer.Option("--board", metavar="BOARD", help="Board folder, export (folder or zip) or URL.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder.")],
    json: Json = False,
) -> None:
    """Write the sealed test of an open window: row ids and inputs, without labels."""
    from ..leaderboard.operations.locations import open_board_view
    from ..leaderboard.sealed.published import export_draw

    with show_progress(), open_board_view(board) as board_view:
        folder = export_draw(board_view, window, out)
    emit_json({"draw": str(folder)}) if json else print_line(
        f"{folder}: inputs without labels. "
        f"Answer them: farshift board sealed answer {folder} MODEL --team TEAM --out FILE"
    )


@app.command("answer")
def sealed_answer(
    draw: Annotated[Path, typer.Argument(metavar="DIR", help="Sealed test written by sealed draw.")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model, as for farshift evaluate, or baseline:NAME.")],
    team: Annotated[str, typer.Option("--team", help="Team name, shown on the board.")],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Answer file (zip) to write; the run folder is written beside it."),
    ],
    card: Annotated[
        Optional[Path],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option("--card", metavar="FILE", help="Model card (TOML), as for farshift pack."),
    ] = None,
    key: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--key", metavar="FILE", help="Team key to sign with (default: the key created by farshift team)."
        ),
    ] = None,
    seeds: Seeds = None,
    budget: BudgetName = "full",
    steps: Steps = None,
    device: Device = "cpu",
    selection: Selection = None,
    settings: Settings = None,
    option: Options = None,
    name: Annotated[
        str, typer.Option("--name", help="Model name on the run card (default: derived from the model).")
    ] = "",
    json: Json = False,
) -> None:
    """Answer a sealed test: train a model on the public training rows, predict the test and pack the answers."""
    from ..core.errors import FarshiftError
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
    if json:
        return emit_json({"file": str(file), "run": str(run.path), "window": sealed_test.terms.window, "team": team})
    print_line(f"{file}: answers of {run.model}. Submit them: farshift board sealed submit {file} --board DIR")


def find_named_model(name: str, benchmark: str, options: list[str]) -> tuple[Any, str, str | None]:
    """The model that the command line names, its code's digest, and the name of a baseline."""
    from ..benchmarks.harness.model_spec import find_model, read_options

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


@app.command("submit")
def sealed_submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Answer file written by sealed answer.")],
    board: Annotated[str, typer.Option("--board", metavar="DIR|URL", help="Board folder, or URL of a board server.")],
    window: Annotated[
        str, typer.Option("--window", metavar="WINDOW", help="Window name, or benchmark name for its latest window.")
    ],
    receipt: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--receipt", metavar="FILE", help="Receipt file to write (default: beside the answers)."),
    ] = None,
    token: Token = "",
    json: Json = False,
) -> None:
    """Submit answers to an open window.

    They are scored when the window closes."""
    from ..leaderboard.sealed.submit import submit_to_board

    out = receipt or file.with_suffix(".receipt.json")
    with show_progress():
        signed_receipt = submit_to_board(board, window, file, token)
        signed_receipt.write(out)
    if json:
        return emit_json({**signed_receipt.record(), "new": signed_receipt.new, "receipt": str(out)})
    again = "" if signed_receipt.new else " (already on the board)"
    print_line(
        f"{signed_receipt.window}: answers of {signed_receipt.team} received at {signed_receipt.time}, record "
        f"{signed_receipt.seq}{again}"
    )
    print_line(f"Keep the receipt {out}; to verify it: farshift board sealed verify {out} BOARD")


@app.command("verify")
def sealed_verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Receipt written by sealed submit.")],
    board: Annotated[str, typer.Argument(metavar="BOARD", help="Board folder, export (folder or zip) or URL.")],
    json: Json = False,
) -> None:
    """Verify a submission receipt: check that the board's ledger contains the answers.

    Exit code 1 if it does not."""
    from ..leaderboard.sealed.receipt import find_receipt_problems, read_receipt

    receipt = read_receipt(file)
    with show_progress():
        problems = find_receipt_problems(receipt, *_read_ledger(board))
    if json:
        emit_json({**receipt.record(), "held": not problems, "problems": problems})
    else:
        print_line(
            f"{receipt.window}: answers {receipt.submission[:12]}.. received at {receipt.time}, record {receipt.seq}"
        )
        for problem in problems:
            print_line(f"The board signed this receipt, but {problem}.")
        print_line("Together, receipt and ledger prove it." if problems else "The ledger contains them.")
    exit_if(bool(problems))


def _read_ledger(location: str) -> tuple[list[Record], str]:
    """The records of a board, an export of it, or one behind an address, and the board's public key."""
    from tempfile import TemporaryDirectory

    from ..leaderboard.board import Board
    from ..leaderboard.storage.readers import LEDGER, ExportReader, UrlReader

    if "://" in location:
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            url_reader = UrlReader(location, Path(folder))
            return url_reader.read()[0], str(url_reader.card.get("key"))
    if (Path(location) / LEDGER).is_file():
        export = ExportReader(Path(location))
        return export.read()[0], str(export.card.get("key"))
    board = Board(Path(location))
    return board.ledger.store.records(), board.ledger.key


@app.command("close")
def sealed_close(window: WindowName, board: Folder, json: Json = False) -> None:
    """Close a window after its closing time: score every answer and reveal the seed."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.results import make_window_results
    from ..leaderboard.sealed.seal import close_window as go

    with show_progress():
        opened = Board(board)
        window_results = make_window_results(opened, go(opened, window).name)
    emit_json(window_results) if json else print_results(window_results)


@app.command("list")
def sealed_list(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Board folder.")],
    window: Annotated[str, typer.Option("--window", metavar="WINDOW", help="Show only this window, in full.")] = "",
    json: Json = False,
) -> None:
    """List the sealed tests of a board: window, state, times, number of answers."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.results import list_window_results, make_window_results

    if window:
        window_results = make_window_results(Board(folder), window)
        return emit_json(window_results) if json else print_results(window_results)
    every = list_window_results(Board(folder))
    if json:
        return emit_json(every)
    rows = [
        [
            record["terms"]["window"],
            record["state"],
            record["terms"]["opens"],
            record["terms"]["closes"],
            record["answers"],
        ]
        for record in every
    ]
    print_table("", ["window", "state", "opens", "closes", "answers"], rows)
