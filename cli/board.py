"""Commands of the leaderboard: pack and submit, and `farshift board`."""

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
board_app = typer.Typer(
    help="Leaderboards: make one, read its tables, verify it, export it, serve it.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The board's folder.")]
BoardLocation = Annotated[
    str, typer.Argument(metavar="DIR|EXPORT|URL", help="A board's folder, an export (folder or zip), or its address.")
]
_ENTRY = "The entry's name: 16 hexadecimal digits, as farshift submit prints it."
Entry = Annotated[str, typer.Argument(metavar="ENTRY", help=_ENTRY)]
Reason = Annotated[str, typer.Option("--reason", help="Why: the board shows it.")]


@app.command()
def pack(
    runs: Annotated[
        Optional[list[Path]],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Argument(metavar="RUN...", help="The folders of finished runs, each of a model on a benchmark."),
    ] = None,
    out: Annotated[Optional[Path], typer.Option("--out", metavar="FILE", help="The submission file to write.")] = None,  # noqa: UP045
    team: Annotated[str, typer.Option("--team", help="Team name.")] = "",
    note: Annotated[str, typer.Option("--note", help="A line that the board shows.")] = "",
    name: Annotated[str, typer.Option("--name", help="Name of the submission.")] = "",
    card: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--card", metavar="FILE", help="A TOML file with the model card; the options go before it."),
    ] = None,
    key: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--key", metavar="FILE", help="The team's key, which signs it; default: your home's (farshift team)."
        ),
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Sign with no key, though there is one.")] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a model card to fill in, and stop.")] = False,
    json: Json = False,
) -> None:
    """Pack finished runs into a submission file: predictions and cards, no code. Checked as a board checks it."""
    from ..core.errors import FarshiftError
    from ..leaderboard.submission.pack import pack_runs as go
    from ..leaderboard.submission.team_key import find_default_key, read_team_name
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
    print_line(f"{file}: {size}. Hand it in: farshift submit {file} --to BOARD")


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What farshift pack wrote.")],
    to: Annotated[
        str, typer.Option("--to", metavar="DIR|URL", help="The board: its folder, or the address of a server's.")
    ],
    token: Token = "",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="For a server: wait until it is scored, or print its state.")
    ] = True,
    reference: Annotated[
        bool,
        typer.Option("--reference", help="For a board's folder: declare the entries as references (always ranked)."),
    ] = False,
    json: Json = False,
) -> None:
    """Submit a file: it is validated, scored from its predictions and entered in the ledger.

    The same file submitted again is entered once: repeat the command to go on after an interruption, or to see the
    state of a submission to a server (`--no-wait`)."""
    from ..core.errors import FarshiftError
    from ..leaderboard.operations.locations import is_url, submit_at
    from ..leaderboard.submission.remote import RemoteBoard

    if reference and is_url(to):
        raise FarshiftError("submit: the board's operator declares references, on its folder (--to DIR --reference)")
    with print_friendly_errors(json), show_progress():
        if not wait and is_url(to):
            remote = RemoteBoard(to, token)
            handed = remote.hand_over(file)
            if handed.state["state"] in ("refused", "failed"):
                remote.entered(handed)
        else:
            handed = None
            entries, new = submit_at(to, file, token)
            if reference:
                _declare_references(to, entries)
    if handed is not None:
        if json:
            return emit_json({"board": to, **handed.state, "new": handed.new})
        return print_line(_describe_state(to, handed.state))
    if json:
        return emit_json({"board": to, "entries": entries, "new": new})
    print_line(
        f"{format_count(len(entries), 'entry', 'entries')} on {to}: {', '.join(entries)}"
        + ("" if new else " (they were there already)")
    )


def _describe_state(board: str, state: Mapping[str, Any]) -> str:
    """The state of a submission to a board's server, as one line."""
    if state["state"] == "entered":
        return f"{format_count(len(state['entries']), 'entry', 'entries')} on {board}: {', '.join(state['entries'])}"
    position = f", position {state['position']} in the queue" if "position" in state else ""
    return f"{board}: submission {state['id']} is {state['state']}{position}"


def _declare_references(folder: str, entries: list[str]) -> None:
    from ..leaderboard.board import Board
    from ..leaderboard.operations.reference import declare_references

    declare_references(Board(folder), entries)


@board_app.command("init")
def board_init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder; with --new-key a board's.")],
    name: Annotated[str, typer.Option("--name", help="The board's title.")] = "Farshift board",
    store: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--store", metavar="URL", help="Keep the ledger in this PostgreSQL database instead of a file."),
    ] = None,
    files: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--files", metavar="URL", help="Keep submissions and scores in this store: s3://BUCKET/FOLDER."),
    ] = None,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Give an existing board a new key, which the old one signs.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", help="With --new-key: why. The board shows it.")] = "",
    json: Json = False,
) -> None:
    """Make a new board in an empty folder, with a key of its own."""
    from ..core.errors import FarshiftError
    from ..leaderboard.board import Board, get_key_path

    if new_key:
        return _rotate_key(folder, reason, json)
    if reason:
        raise FarshiftError("init: --reason is that of a new key (--new-key)")
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
    out: Annotated[Optional[Path], typer.Option("--out", metavar="DIR", help="Default: DIR/site.")] = None,  # noqa: UP045
    json: Json = False,
) -> None:
    """Write the board as static pages."""
    from ..core.errors import FarshiftError
    from ..leaderboard.operations.locations import open_board_view
    from ..leaderboard.publish.write import build_site

    if out is None and not Path(location).is_dir():
        raise FarshiftError(f"site: say where the pages of {location} are to be written (--out DIR)")
    with show_progress(), open_board_view(location) as board:
        page = build_site(board, out)
    emit_json({"page": str(page)}) if json else print_line(f"open {page.resolve()}")


@board_app.command("verify")
def board_verify(
    location: BoardLocation,
    head: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--head", metavar="HASH", help="A record's hash from an earlier look: it must still be there."),
    ] = None,
    key: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--key", metavar="HEX", help="The board's public key, from an earlier look."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Processes at work; 0 for one a core.")] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Use nothing that an earlier verification computed.")] = False,
    json: Json = False,
) -> None:
    """Check the ledger, and recompute every score from its predictions. Exit code 1 where something differs, or could
    not be recomputed. Goes on where an earlier verification was cut off."""
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
    """Bring a board up to this version: its database, and the scores of an older scorer.

    The database gets this version's schema (Alembic). Entries of an older scorer are scored again from their
    predictions; both scores are kept. Exit code 1 where one could not be."""
    from ..leaderboard.board import Board, migrate_board
    from ..leaderboard.operations.rescore import rescore_entries

    with show_progress():
        before, after = migrate_board(folder)
        report = rescore_entries(Board(folder))
    if json:
        emit_json(report.__dict__ | {"schema": {"before": before, "after": after}})
    else:
        print_line(f"{folder}: schema {after}" + ("" if before == after else f", was {before}"))
        print_line(f"{folder}: {format_count(len(report.rescored), 'entry', 'entries')} scored anew")
        for record in report.rescored:
            before, after = record["before"]["ood"], record["after"]["ood"]
            print_line(
                f"  {record['entry']}: scorer {record['replaces']} to {record['scorer']}, OOD {before:.4f} to "
                f"{after:.4f}"
            )
        for why in report.left:
            print_line(f"  left as it is: {why}")
    exit_if(bool(report.left))


@board_app.command("withdraw")
def board_withdraw(
    folder: Folder,
    entry: Entry,
    reason: Reason,
    by_board: Annotated[
        bool, typer.Option("--by-board", help="Remove it in the board's name rather than its team's.")
    ] = False,
    json: Json = False,
) -> None:
    """Take an entry out of the tables. It stays in the ledger, listed separately with the reason."""
    from ..leaderboard.board import Board
    from ..leaderboard.operations.withdraw import remove_entry, withdraw_entry

    if by_board:
        remove_entry(Board(folder), entry, reason)
    else:
        withdraw_entry(Board(folder), entry, reason)
    state = "removed" if by_board else "withdrawn"
    emit_json({"entry": entry, state: reason}) if json else print_line(f"{folder}: {entry} is {state}: {reason}")


def _rotate_key(folder: Path, reason: str, json: bool) -> None:
    from ..leaderboard.board import Board, get_key_path
    from ..leaderboard.operations.rotate import rotate_key

    board = Board(folder)
    record, old = rotate_key(board, reason)
    key, file = record.body["key"], get_key_path(board.path)
    if json:
        return emit_json({"seq": record.seq, "key": key, "file": str(file), "old": str(old)})
    print_line(f"{folder}: records after {record.seq} are signed by {key}. Back up {file}; {old} signs nothing more")


@contextmanager
def print_friendly_errors(json: bool) -> Iterator[None]:
    """Tell the problems of a refused submission one by one: as objects on stdout, or one a line."""
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
