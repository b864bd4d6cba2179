"""Commands for leaderboards: pack and submit, and `farshift board`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..core.listings.plural import format_count
from .options import Token
from .terminal import Json, emit_json, exit_if, print_block, print_error, print_line, show_progress

app = typer.Typer()
board_app = typer.Typer(help="Create, read, verify, export and serve leaderboards.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Board folder.")]
BoardLocation = Annotated[
    str, typer.Argument(metavar="DIR|EXPORT|URL", help="Board folder, export (folder or zip) or URL.")
]
_ENTRY = "Entry id: 16 hexadecimal digits, as printed by farshift submit."
Entry = Annotated[str, typer.Argument(metavar="ENTRY", help=_ENTRY)]
Reason = Annotated[str, typer.Option("--reason", help="Reason, shown on the board.")]


@app.command()
def pack(
    runs: Annotated[
        Optional[list[Path]],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Argument(metavar="RUN...", help="Folders of finished runs, each of one model on one benchmark."),
    ] = None,
    out: Annotated[Optional[Path], typer.Option("--out", metavar="FILE", help="Submission file to write.")] = None,  # noqa: UP045
    team: Annotated[str, typer.Option("--team", help="Team name (default: from the model card or the team key).")] = "",
    note: Annotated[str, typer.Option("--note", help="One-line note, shown on the board.")] = "",
    name: Annotated[str, typer.Option("--name", help="Submission name (default: from the model card).")] = "",
    card: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--card", metavar="FILE", help="Model card (TOML); options override its values."),
    ] = None,
    key: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--key", metavar="FILE", help="Team key to sign with (default: the key created by farshift team)."
        ),
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Do not sign, even if there is a team key.")] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a model card template and exit.")] = False,
    json: Json = False,
) -> None:
    """Pack finished runs into a submission file: predictions and cards, no code.

    The file is validated with the same checks as on a board."""
    from ..core.errors import FarshiftError
    from ..leaderboard.submission.pack import find_default_key, read_team_name
    from ..leaderboard.submission.pack import pack_runs as go
    from ..leaderboard.validation.card import TEMPLATE

    if template:
        return emit_json({"template": TEMPLATE}) if json else print_block(TEMPLATE.rstrip())
    if not runs or out is None:
        raise FarshiftError("pack: name at least one run folder, and the file to write (--out FILE)")
    if unsigned and key is not None:
        raise FarshiftError("pack: choose one of --key and --unsigned")
    with print_friendly_errors(json), show_progress():
        signing = None if unsigned else find_default_key(key)
        default = read_team_name() if signing is not None and key is None else ""
        file = go(runs, out, team, note, card, name, key=signing, default_team=default)
    if json:
        signed = {} if signing is None else {"team_key": signing.public}
        return emit_json(
            {"file": str(file), "bytes": file.stat().st_size, "runs": [str(path) for path in runs]} | signed
        )
    size = f"{format_count(len(runs), 'run')}, {file.stat().st_size:,} bytes" + (
        "" if signing is None else f", signed by {signing.path}"
    )
    print_line(f"{file}: {size}. Submit it: farshift submit {file} --to BOARD")


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Submission file written by farshift pack.")],
    to: Annotated[str, typer.Option("--to", metavar="DIR|URL", help="Board folder, or URL of a board server.")],
    token: Token = "",
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait", help="For a server: wait until the file is scored, or print its state at once."
        ),
    ] = True,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference",
            help="For a board folder: mark the entries as reference entries, such as baselines, which are always "
            "ranked.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Submit a file to a board, which validates it, scores its predictions and adds the entries to its ledger.

    Submitting the same file again adds no entries: repeat the command to resume after an interruption, or, with
    --no-wait, to print the state of a submission on a server."""
    from ..core.errors import FarshiftError
    from ..leaderboard.operations.locations import is_url, submit_at
    from ..leaderboard.submission.remote import RemoteBoard

    if reference and is_url(to):
        raise FarshiftError(
            "submit: --reference needs the board folder (--to DIR): only the operator can mark references"
        )
    with print_friendly_errors(json), show_progress():
        if not wait and is_url(to):
            remote = RemoteBoard(to, token)
            upload = remote.hand_over(file)
            if upload.state["state"] in ("refused", "failed"):
                remote.entered(upload)
        else:
            upload = None
            entries, new = submit_at(to, file, token)
            if reference:
                _declare_references(to, entries)
    if upload is not None:
        if json:
            return emit_json({"board": to, **upload.state, "new": upload.new})
        return print_line(_describe_state(to, upload.state))
    if json:
        return emit_json({"board": to, "entries": entries, "new": new})
    print_line(
        f"{format_count(len(entries), 'entry', 'entries')} on {to}: {', '.join(entries)}"
        + ("" if new else " (already on the board)")
    )


def _describe_state(board: str, state: Mapping[str, Any]) -> str:
    """The state of a submission to a board's server, as one line."""
    if state["state"] == "entered":
        return f"{format_count(len(state['entries']), 'entry', 'entries')} on {board}: {', '.join(state['entries'])}"
    position = f", position {state['position']} in the queue" if "position" in state else ""
    return f"{board}: submission {state['id']} is {state['state']}{position}"


def _declare_references(folder: str, entries: list[str]) -> None:
    from ..leaderboard.board import Board
    from ..leaderboard.operations.manage import declare_references

    declare_references(Board(folder), entries)


@board_app.command("init")
def board_init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New or empty folder; with --new-key, a board folder.")],
    name: Annotated[str, typer.Option("--name", help="Board title.")] = "Farshift board",
    store: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--store", metavar="URL", help="PostgreSQL database for the ledger (default: an SQLite file in DIR)."
        ),
    ] = None,
    files: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--files", metavar="URL", help="Object store for submissions and scores: s3://BUCKET/FOLDER (default: DIR)."
        ),
    ] = None,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Rotate the key of an existing board; the old key signs the new one.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", help="With --new-key: reason, shown on the board.")] = "",
    json: Json = False,
) -> None:
    """Create a board with its own signing key in an empty folder."""
    from ..core.errors import FarshiftError
    from ..leaderboard.board import Board, get_key_path

    if new_key:
        return _rotate_key(folder, reason, json)
    if reason:
        raise FarshiftError("init: --reason goes with --new-key")
    board = Board.init(folder, name, store, files)
    if json:
        return emit_json({"board": str(board.path), "name": board.name, "key": board.ledger.key})
    print_line(
        f"{board.path}: a new board, {name!r}. Its private key is {get_key_path(board.path)}: back it up, keep it "
        "secret"
    )


@board_app.command("site")
def board_site(
    location: BoardLocation,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", metavar="DIR", help="Output folder (default: DIR/site)."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the board as static web pages."""
    from ..core.errors import FarshiftError
    from ..leaderboard.operations.locations import open_board_view
    from ..leaderboard.publish.site import build_site

    if out is None and not Path(location).is_dir():
        raise FarshiftError(f"site: name an output folder for the pages of {location} (--out DIR)")
    with show_progress(), open_board_view(location) as board:
        page = build_site(board, out)
    emit_json({"page": str(page)}) if json else print_line(f"open {page.resolve()}")


@board_app.command("verify")
def board_verify(
    location: BoardLocation,
    head: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--head",
            metavar="HASH",
            help="Hash of an earlier head (last record) of the ledger; verification fails if the ledger does not "
            "contain it.",
        ),
    ] = None,
    key: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--key", metavar="HEX", help="Expected public key of the board, in hexadecimal."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Number of processes; 0 for one per core.")] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore the results of earlier verifications.")] = False,
    json: Json = False,
) -> None:
    """Verify the ledger, and recompute every score from its predictions.

    Exit code 1 if something differs or cannot be recomputed. An interrupted verification is resumed."""
    from ..leaderboard.operations.locations import verify_at

    with show_progress():
        verification = verify_at(location, head, key, workers=workers, fresh=fresh)
    if json:
        emit_json(
            {
                "board": location,
                **verification.__dict__,
                "entries_verified": verification.verified,
                "verified": verification.is_complete,
            }
        )
    else:
        state = [f"{verification.verified} verified"] if not verification.differences else []
        state += [format_count(len(verification.differences), "difference")] if verification.differences else []
        state += [f"{len(verification.not_recomputed)} not recomputed"] if verification.not_recomputed else []
        print_line(f"{location}: {format_count(verification.entries, 'entry', 'entries')}: {', '.join(state)}")
        for text in (*verification.differences, *(f"not recomputed: {why}" for why in verification.not_recomputed)):
            print_line(f"  {text}")
        for text in verification.notes:
            print_line(f"  note: {text}")
        print_line(f"{format_count(verification.records, 'record')}, head {verification.head}, key {verification.key}")
    exit_if(not verification.is_complete)


@board_app.command("rescore")
def board_rescore(folder: Folder, json: Json = False) -> None:
    """Upgrade a board to the installed version: its database schema and its scores.

    The database is migrated to the new schema. Entries scored with an older version of the scorer are
    rescored from their predictions; the ledger retains both scores. Exit code 1 if an entry cannot be rescored."""
    from ..leaderboard.board import Board, migrate_board
    from ..leaderboard.operations.submit import rescore_entries

    with show_progress():
        before, after = migrate_board(folder)
        report = rescore_entries(Board(folder))
    if json:
        emit_json(report.__dict__ | {"schema": {"before": before, "after": after}})
    else:
        print_line(f"{folder}: schema {after}" + ("" if before == after else f", was {before}"))
        print_line(f"{folder}: {format_count(len(report.rescored), 'entry', 'entries')} rescored")
        for record in report.rescored:
            before, after = record["before"]["ood"], record["after"]["ood"]
            print_line(
                f"  {record['entry']}: scorer {record['replaces']} to {record['scorer']}, OOD {before:.4f} to "
                f"{after:.4f}"
            )
        for why in report.left:
            print_line(f"  not rescored: {why}")
    exit_if(bool(report.left))


@board_app.command("withdraw")
def board_withdraw(
    folder: Folder,
    entry: Entry,
    reason: Reason,
    by_board: Annotated[
        bool,
        typer.Option(
            "--by-board", help="Record the entry as removed by the board operator instead of withdrawn by its team."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Withdraw an entry from the tables.

    The entry stays in the ledger and is listed separately, with the reason."""
    from ..leaderboard.board import Board
    from ..leaderboard.operations.manage import remove_entry, withdraw_entry

    if by_board:
        remove_entry(Board(folder), entry, reason)
    else:
        withdraw_entry(Board(folder), entry, reason)
    state = "removed" if by_board else "withdrawn"
    emit_json({"entry": entry, state: reason}) if json else print_line(f"{folder}: {entry} is {state}: {reason}")


def _rotate_key(folder: Path, reason: str, json: bool) -> None:
    from ..leaderboard.board import Board, get_key_path
    from ..leaderboard.operations.manage import rotate_key

    board = Board(folder)
    record, old = rotate_key(board, reason)
    key, file = record.body["key"], get_key_path(board.path)
    if json:
        return emit_json({"seq": record.seq, "key": key, "file": str(file), "old": str(old)})
    print_line(f"{folder}: records after {record.seq} are signed by {key}. Back up {file}; {old} is no longer used")


@contextmanager
def print_friendly_errors(json: bool) -> Iterator[None]:
    """Print the problems of a refused submission one by one: as objects on stdout, or one per line."""
    from ..core.errors import BadSubmission, FarshiftError
    from ..leaderboard.validation.problem import to_problem_records

    try:
        yield
    except BadSubmission as error:
        if json:
            emit_json({"error": str(error), "problems": to_problem_records(error)})
            raise typer.Exit(2) from error
        if len(error.problems) < 2:
            raise
        for problem in error.problems:
            print_error(str(problem))
        raise FarshiftError(f"refused: {len(error.problems)} problems are listed above") from error
