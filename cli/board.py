"""Commands of the leaderboard: pack and submit, and `farshift board`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Optional

import typer

from ..core.listings.plural import counted
from .options import Token
from .terminal import Json, block, complain, emit_json, exit_if, line, watched

app = typer.Typer()
board_app = typer.Typer(
    help="Leaderboards: make one, read its tables, verify it, export it, seal draws.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The board's folder.")]
Place = Annotated[
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
    team: Annotated[str, typer.Option("--team", help="Who hands it in.")] = "",
    note: Annotated[str, typer.Option("--note", help="A line that the board shows.")] = "",
    name: Annotated[str, typer.Option("--name", help="What the submission is called.")] = "",
    card: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--card", metavar="FILE", help="A TOML file with the model card; the options go before it."),
    ] = None,
    key: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--key", metavar="FILE", help="The team's key, which signs it; default: farshift team create's."),
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Sign with no key, though there is one.")] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a model card to fill in, and stop.")] = False,
    json: Json = False,
) -> None:
    """Pack finished runs into a submission file: predictions and cards, no code. Checked as a board checks it."""
    from ..core.errors import FarshiftError
    from ..leaderboard.submission.pack import pack as go
    from ..leaderboard.submission.team_key import default_key, team_name
    from ..leaderboard.validation.card import TEMPLATE

    if template:
        return emit_json({"template": TEMPLATE}) if json else block(TEMPLATE.rstrip())
    if not runs or out is None:
        raise FarshiftError("pack: name at least one run folder, and the file to write (--out FILE)")
    if unsigned and key is not None:
        raise FarshiftError("pack: choose one of --key and --unsigned")
    with refused_in_words(json), watched():
        signing = None if unsigned else default_key(key)
        default = team_name() if signing is not None and key is None else ""
        file = go(runs, out, team, note, card, name, key=signing, default_team=default)
    if json:
        signed = {} if signing is None else {"team_key": signing.public}
        return emit_json(
            {"file": str(file), "bytes": file.stat().st_size, "runs": [str(path) for path in runs]} | signed
        )
    size = f"{counted(len(runs), 'run')}, {file.stat().st_size:,} bytes" + (
        "" if signing is None else f", signed by {signing.path}"
    )
    line(f"{file}: {size}. Hand it in: farshift submit {file} --to BOARD")


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What farshift pack wrote.")],
    to: Annotated[
        str, typer.Option("--to", metavar="DIR|URL", help="The board: its folder, or the address of a server's.")
    ],
    token: Token = "",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="For a server: wait until it is entered, or refused.")
    ] = True,
    json: Json = False,
) -> None:
    """Submit a file: validated, scored from its predictions, entered in the ledger."""
    from ..leaderboard.operations.places import is_url, submit_at
    from ..leaderboard.submission.remote import RemoteBoard

    with refused_in_words(json), watched():
        if not wait and is_url(to):
            handed = RemoteBoard(to, token).hand_over(file)
        else:
            handed = None
            entries, new = submit_at(to, file, token)
    if handed is not None:
        if json:
            return emit_json({"board": to, **handed.state, "new": handed.new})
        return line(f"{to} has it: farshift board state {to} {handed.id}")
    if json:
        return emit_json({"board": to, "entries": entries, "new": new})
    line(
        f"{counted(len(entries), 'entry', 'entries')} on {to}: {', '.join(entries)}"
        + ("" if new else " (they were there already)")
    )


@board_app.command("init")
def board_init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make, or an empty one.")],
    name: Annotated[str, typer.Option("--name", help="The board's title.")] = "Farshift board",
    store: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--store", metavar="URL", help="Keep the ledger in this PostgreSQL database instead of a file."),
    ] = None,
    files: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--files", metavar="URL", help="Keep submissions and scores in this store: s3://BUCKET/FOLDER."),
    ] = None,
    json: Json = False,
) -> None:
    """Make a new board in an empty folder, with a key of its own."""
    from ..leaderboard.board import Board, key_file

    board = Board.init(folder, name, store, files)
    if json:
        return emit_json({"board": str(board.path), "name": board.name, "key": board.ledger.key})
    line(f"{board.path}: a new board, {name!r}. Its private key is {key_file(board.path)}: back it up, keep it secret")


@board_app.command("site")
def board_site(
    place: Place,
    out: Annotated[Optional[Path], typer.Option("--out", metavar="DIR", help="Default: DIR/site.")] = None,  # noqa: UP045
    json: Json = False,
) -> None:
    """Write the board as static pages."""
    from ..core.errors import FarshiftError
    from ..leaderboard.operations.places import viewed
    from ..leaderboard.publish.write import build

    if out is None and not Path(place).is_dir():
        raise FarshiftError(f"site: say where the pages of {place} are to be written (--out DIR)")
    with watched(), viewed(place) as board:
        page = build(board, out)
    emit_json({"page": str(page)}) if json else line(f"open {page.resolve()}")


@board_app.command("verify")
def board_verify(
    place: Place,
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
    from ..leaderboard.operations.places import verify_at

    with watched():
        found = verify_at(place, head, key, workers=workers, fresh=fresh)
    if json:
        emit_json({"board": place, **found.__dict__, "entries_verified": found.verified, "verified": found.whole})
    else:
        state = [f"{found.verified} verified"] if not found.differences else []
        state += [counted(len(found.differences), "difference")] if found.differences else []
        state += [f"{len(found.not_recomputed)} not recomputed"] if found.not_recomputed else []
        line(f"{place}: {counted(found.entries, 'entry', 'entries')}: {', '.join(state)}")
        for text in (*found.differences, *(f"not recomputed: {why}" for why in found.not_recomputed)):
            line(f"  {text}")
        for text in found.notes:
            line(f"  note: {text}")
        line(f"{counted(found.records, 'record')}, head {found.head}, key {found.key}")
    exit_if(not found.whole)


@board_app.command("export")
def board_export(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", metavar="EXPORT", help="The folder to write or bring up to date.")],
    json: Json = False,
) -> None:
    """Write all that is needed to verify the board: ledger, submissions, scores."""
    from ..leaderboard.board import Board
    from ..leaderboard.operations.export import export

    with watched():
        found = export(Board(folder), out)
    if json:
        return emit_json(found.__dict__ | {"out": str(out)})
    records, files = counted(found.records, "record"), counted(found.files, "file")
    line(f"{out}: {records}, {files} ({found.new} new), head {found.head}")


@board_app.command("rescore")
def board_rescore(folder: Folder, json: Json = False) -> None:
    """Score every entry of an older scorer again from its predictions; both values are kept. Exit code 1 where one
    could not be."""
    from ..leaderboard.board import Board
    from ..leaderboard.operations.rescore import rescore

    with watched():
        found = rescore(Board(folder))
    if json:
        emit_json(found.__dict__)
    else:
        line(f"{folder}: {counted(len(found.rescored), 'entry', 'entries')} scored anew")
        for one in found.rescored:
            before, after = one["before"]["ood"], one["after"]["ood"]
            line(f"  {one['entry']}: scorer {one['replaces']} to {one['scorer']}, OOD {before:.4f} to {after:.4f}")
        for why in found.left:
            line(f"  left as it is: {why}")
    exit_if(bool(found.left))


@board_app.command("withdraw")
def board_withdraw(folder: Folder, entry: Entry, reason: Reason, json: Json = False) -> None:
    """Take an entry out of the tables, for its team. It stays in the ledger, listed separately with the reason."""
    from ..leaderboard.board import Board
    from ..leaderboard.operations.withdraw import withdraw

    withdraw(Board(folder), entry, reason)
    emit_json({"entry": entry, "withdrawn": reason}) if json else line(f"{folder}: {entry} is withdrawn: {reason}")


@board_app.command("remove")
def board_remove(folder: Folder, entry: Entry, reason: Reason, json: Json = False) -> None:
    """Take an entry out of the tables, for the board. It stays in the ledger, listed separately with the reason."""
    from ..leaderboard.board import Board
    from ..leaderboard.operations.withdraw import remove

    remove(Board(folder), entry, reason)
    emit_json({"entry": entry, "removed": reason}) if json else line(f"{folder}: {entry} is removed: {reason}")


@board_app.command("rotate-key")
def board_rotate_key(folder: Folder, reason: Reason, json: Json = False) -> None:
    """Give the board a new key: a record that the old one signs names it, and it signs what follows."""
    from ..leaderboard.board import Board, key_file
    from ..leaderboard.operations.rotate import rotate_key

    board = Board(folder)
    record, old = rotate_key(board, reason)
    key, file = record.body["key"], key_file(board.path)
    if json:
        return emit_json({"seq": record.seq, "key": key, "file": str(file), "old": str(old)})
    line(f"{folder}: records after {record.seq} are signed by {key}. Back up {file}; {old} signs nothing more")


@board_app.command("reference")
def board_reference(
    folder: Folder,
    names: Annotated[Optional[list[str]], typer.Argument(metavar="ENTRY...", help=_ENTRY)] = None,  # noqa: UP045
    team: Annotated[str, typer.Option("--team", help="All entries of this team by now.")] = "",
    json: Json = False,
) -> None:
    """Declare entries to be ranked whatever their number of a team: your own, or baselines. For the board."""
    from ..core.errors import FarshiftError
    from ..leaderboard.board import Board
    from ..leaderboard.operations.reference import reference, reference_team

    if bool(names) == bool(team):
        raise FarshiftError("board reference: name entries, or a team (--team NAME)")
    board = Board(folder)
    new = reference_team(board, team) if team else reference(board, names or [])
    if json:
        return emit_json({"board": str(folder), "declared": new})
    line(f"{folder}: {counted(len(new), 'more reference entry', 'more reference entries')}")


@board_app.command("migrate")
def board_migrate(folder: Folder, json: Json = False) -> None:
    """Bring the ledger's database to the schema of this version."""
    from ..leaderboard.board import migrate_board

    before, after = migrate_board(folder)
    if json:
        return emit_json({"board": str(folder), "before": before, "after": after})
    line(f"{folder}: schema {after}" + (", as it was" if before == after else f", was {before}"))


@contextmanager
def refused_in_words(json: bool) -> Iterator[None]:
    """Tell the problems of a refused submission one by one: as objects on stdout, or one a line."""
    from ..core.errors import BadSubmission, FarshiftError
    from ..leaderboard.validation.problem import problems_of

    try:
        yield
    except BadSubmission as error:
        if json:
            emit_json({"error": str(error), "problems": problems_of(error)})
            raise typer.Exit(2) from error
        if len(error.problems) < 2:
            raise
        for problem in error.problems:
            complain(str(problem))
        raise FarshiftError(f"refused: {len(error.problems)} problems are listed above") from error
