"""`farshift board sealed ..`: tests that nobody has seen, drawn with a secret seed that is committed to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from .options import Token
from .runs import BudgetName, Device, Options, Seeds, Selection, Settings, Steps, read_settings
from .terminal import Json, emit_json, exit_if, give_up, line, table, watched
from .windows import tell_results, tell_window

if TYPE_CHECKING:
    from ..leaderboard.ledger import Record

app = typer.Typer(help="Sealed tests: make one, draw it, answer it, submit answers, close it.", no_args_is_help=True)


Folder = Annotated[Path, typer.Option("--board", metavar="DIR", help="The board's folder.")]
WindowName = Annotated[str, typer.Argument(metavar="WINDOW", help="A window's name, or a benchmark's: its latest one.")]


@app.command("create")
def sealed_create(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="The benchmark whose test rows are drawn in secret.")
    ],
    board: Folder,
    closes: Annotated[str, typer.Option("--closes", metavar="T", help="When the window closes, UTC.")],
    opens: Annotated[str, typer.Option("--opens", metavar="T", help="Such as 2026-12-01T18:00:00Z.")] = "now",
    reveals: Annotated[
        str, typer.Option("--reveals", metavar="T", help="When its seed is revealed at the latest; 7 days after.")
    ] = "",
    json: Json = False,
) -> None:
    """Commit to a secret seed, draw a test that nobody has seen, and announce a window for answers to it."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.seal import seal as go

    with watched():
        window = go(Board(board), benchmark, opens, closes, reveals=reveals)
    tell_window(window, board, json)


@app.command("draw")
def sealed_draw(
    window: WindowName,
    board: Annotated[
        str, typer.Option("--board", metavar="BOARD", help="The board's folder, an export of it, or its address.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the draw is written.")],
    json: Json = False,
) -> None:
    """Write the draw of an open window: row ids and inputs, without labels."""
    from ..leaderboard.operations.places import viewed
    from ..leaderboard.sealed.export import export_draw

    with watched(), viewed(board) as found:
        folder = export_draw(found, window, out)
    emit_json({"draw": str(folder)}) if json else line(
        f"{folder}: inputs without labels. "
        f"Answer them: farshift board sealed answer {folder} MODEL --team TEAM --out FILE"
    )


@app.command("answer")
def sealed_answer(
    draw: Annotated[Path, typer.Argument(metavar="DRAW", help="The folder that `sealed draw` wrote.")],
    model: Annotated[str, typer.Argument(help="As for farshift evaluate, or baseline:NAME.")],
    team: Annotated[str, typer.Option("--team", help="Who answers: the name that is shown.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The answers' zip; the run folder is beside it.")],
    card: Annotated[
        Optional[Path],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option("--card", metavar="FILE", help="TOML with the model card, as for farshift pack."),
    ] = None,
    key: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--key", metavar="FILE", help="The team's key, which signs them; farshift team's."),
    ] = None,
    seeds: Seeds = None,
    budget: BudgetName = "full",
    steps: Steps = None,
    device: Device = "cpu",
    selection: Selection = None,
    settings: Settings = None,
    option: Options = None,
    name: Annotated[str, typer.Option("--name", help="The model's name.")] = "",
    json: Json = False,
) -> None:
    """Train a model on the public training rows, have it answer a draw, and pack the answers."""
    from ..core.errors import FarshiftError
    from ..leaderboard.sealed.answers import pack_answers
    from ..leaderboard.sealed.draw_folder import read_draw
    from ..leaderboard.sealed.predicting import predict_draw
    from ..leaderboard.submission.team_key import default_key

    signing = default_key(key)
    if signing is None:
        raise FarshiftError("answers to a window are signed by your team's key: farshift team --create makes it")
    with watched():
        given = read_draw(draw)
        found, code, own = model_named(model, given.terms.benchmark, option or [])
        run = predict_draw(
            found,
            given,
            seeds=seeds,
            budget=budget,
            out=out.with_name(f"{out.stem}-run"),
            steps=steps,
            device=device,
            name=name or own,
            selection=selection,
            settings=read_settings(settings),
            code=code,
            on_hang=lambda: give_up("predict did not come back in time and cannot be interrupted; repeat the command"),
        )
        file = pack_answers(run, out, given, team, card, signing)
    if json:
        return emit_json({"file": str(file), "run": str(run.path), "window": given.terms.window, "team": team})
    line(f"{file}: answers of {run.model}. Submit them: farshift board sealed submit {file} --board DIR")


def model_named(name: str, benchmark: str, options: list[str]) -> tuple[Any, str, str | None]:
    """The model that the command line names, its code's digest, and the name of a baseline."""
    from ..benchmarks.harness.model_spec import find_model, read_options

    scheme, _, rest = name.partition(":")
    if scheme != "baseline":
        return *find_model(name, read_options(options)), None
    from ..baselines.baseline import baseline
    from ..baselines.recipe import recipe
    from ..baselines.running.plan import code_digest

    made = recipe(rest)
    return lambda seed, task: baseline(made, task, seed, benchmark), code_digest(made), made.name


@app.command("submit")
def sealed_submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The answers that `sealed answer` wrote.")],
    board: Annotated[
        str, typer.Option("--board", metavar="DIR|URL", help="The board: its folder, or the address of a server's.")
    ],
    window: Annotated[str, typer.Option("--window", metavar="W", help="The window, or its benchmark.")],
    receipt: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--receipt", metavar="FILE", help="Where the receipt is written; default: beside the answers."),
    ] = None,
    token: Token = "",
    json: Json = False,
) -> None:
    """Submit answers to an open window. They are scored when it closes."""
    from ..leaderboard.sealed.hand_in import hand_in_at

    out = receipt or file.with_suffix(".receipt.json")
    with watched():
        taken = hand_in_at(board, window, file, token)
        taken.write(out)
    if json:
        return emit_json({**taken.record(), "new": taken.new, "receipt": str(out)})
    again = "" if taken.new else " (they were there already)"
    line(f"{taken.window}: answers of {taken.team} taken at {taken.time}, record {taken.seq}{again}")
    line(f"Keep the receipt, {out}: farshift board sealed verify {out} BOARD checks the board against it")


@app.command("verify")
def sealed_verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The receipt that `sealed submit` wrote.")],
    board: Annotated[str, typer.Argument(metavar="BOARD", help="The board's folder, an export of it, or its address.")],
    json: Json = False,
) -> None:
    """Verify a submission receipt: that the board's ledger has the answers.

    Exit code 1 where it has not."""
    from ..leaderboard.sealed.receipt import held_to, read_receipt

    given = read_receipt(file)
    with watched():
        problems = held_to(given, *_ledger_of(board))
    if json:
        emit_json({**given.record(), "held": not problems, "problems": problems})
    else:
        line(f"{given.window}: answers {given.submission[:12]}.. taken at {given.time}, record {given.seq}")
        for problem in problems:
            line(f"The board signed this receipt, and {problem}.")
        line("The board did not keep to it: receipt and ledger are the proof." if problems else "The ledger has them.")
    exit_if(bool(problems))


def _ledger_of(place: str) -> tuple[list[Record], str]:
    """The records of a board, an export of it, or one behind an address, and the board's public key."""
    from tempfile import TemporaryDirectory

    from ..leaderboard.board import Board
    from ..leaderboard.storage.readers import LEDGER, ExportReader, UrlReader

    if "://" in place:
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            there = UrlReader(place, Path(folder))
            return there.read()[0], str(there.card.get("key"))
    if (Path(place) / LEDGER).is_file():
        export = ExportReader(Path(place))
        return export.read()[0], str(export.card.get("key"))
    board = Board(Path(place))
    return board.ledger.store.records(), board.ledger.key


@app.command("close")
def sealed_close(window: WindowName, board: Folder, json: Json = False) -> None:
    """Close a window whose time is over: score every answer, reveal the seed."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.close import close as go
    from ..leaderboard.sealed.results import results

    with watched():
        opened = Board(board)
        found = results(opened, go(opened, window).name)
    emit_json(found) if json else tell_results(found)


@app.command("list")
def sealed_list(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The board's folder.")],
    window: Annotated[str, typer.Option("--window", metavar="W", help="One window in full.")] = "",
    json: Json = False,
) -> None:
    """List the sealed windows of a board and their states."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.results import all_results, results

    if window:
        found = results(Board(folder), window)
        return emit_json(found) if json else tell_results(found)
    every = all_results(Board(folder))
    if json:
        return emit_json(every)
    rows = [
        [one["terms"]["window"], one["state"], one["terms"]["opens"], one["terms"]["closes"], one["answers"]]
        for one in every
    ]
    table("", ["window", "state", "opens", "closes", "answers"], rows)
