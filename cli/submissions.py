"""`farshift pack`, `submit` and `team`: what a team sends to a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from ..core.errors import FarshiftError
from ..core.text import format_count
from .options import command
from .output import emit_json, print_block, print_error, print_line
from .progress import show_progress

app = typer.Typer()


@command(app)
def pack(
    runs: list[Path] | None = None,
    out: Path | None = None,
    team: str = "",
    note: str = "",
    name: str = "",
    card: Path | None = None,
    key: Path | None = None,
    unsigned: bool = False,
    template: bool = False,
    json: bool = False,
) -> None:
    """Pack finished runs into a submission file: predictions and cards, no code.

    The file is validated with the same checks as on a board.

    runs RUN...: Folders of finished runs, each of one model on one benchmark.
    --out FILE: Submission file to write.
    --team: Team name (default: from the model card or the team key).
    --note: One-line note, shown on the board.
    --name: Submission name (default: from the model card).
    --card FILE: Model card (TOML); options override its values.
    --key FILE: Team key to sign with (default: the key created by farshift team).
    --unsigned: Do not sign, even if there is a team key.
    --template: Print a model card template and exit.
    """
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


@command(app)
def submit(
    file: Path, to: str, token: str = "", wait: bool = True, reference: bool = False, json: bool = False
) -> None:
    """Submit a file to a board, which validates it, scores its predictions and adds the entries to its ledger.

    Submitting the same file again adds no entries: repeat the command to resume after an interruption, or, with
    --no-wait, to print the state of a submission on a server.

    file FILE: Submission file written by farshift pack.
    --to DIR|URL: Board folder, or URL of a board server.
    --wait/--no-wait: For a server: wait until the file is scored, or print its state at once.
    --reference: For a board folder: mark the entries as reference entries, such as baselines, which are always
        ranked.
    """
    from ..leaderboard.board import Board
    from ..leaderboard.operations.submit import declare_references, submit_at
    from ..leaderboard.storage.http import is_url
    from ..leaderboard.submission.remote import RemoteBoard

    if reference and is_url(to):
        raise FarshiftError(
            "submit: --reference needs the board folder (--to DIR): only the operator can mark references"
        )
    with print_friendly_errors(json), show_progress():
        if not wait and is_url(to):
            remote = RemoteBoard(to, token)
            upload = remote.send(file)
            if upload["state"] in ("refused", "failed"):
                remote.wait(upload)
        else:
            upload = None
            entries, new = submit_at(to, file, token)
            if reference:
                declare_references(Board(Path(to)), entries)
    if upload is not None:
        if json:
            return emit_json({"board": to, **upload})
        return print_line(_describe_state(to, upload))
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


@contextmanager
def print_friendly_errors(json: bool) -> Iterator[None]:
    """Print the problems of a refused submission one by one: as objects on stdout, or one per line."""
    from ..core.errors import BadSubmission
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


@command(app)
def team(create: bool = False, name: str = "", json: bool = False) -> None:
    """Print your team's public key and its fingerprint.

    Boards attribute every submission signed with this key to the team.

    --create: Create the key in FARSHIFT_HOME; an existing key is not replaced.
    --name: With --create: team name, which farshift pack uses by default.
    """
    from ..leaderboard.submission.pack import create_team, find_default_key

    if create:
        return _print_key(*create_team(name), json)
    if name:
        raise FarshiftError("team: --name goes with --create")
    key = find_default_key()
    if key is None:
        raise FarshiftError("no team key found: create one with farshift team --create")
    _print_key(key, False, json)


def _print_key(key: Any, new: bool, json: bool) -> None:
    from ..leaderboard.submission.pack import read_team_name
    from ..leaderboard.teams import compute_fingerprint

    path, public, name = Path(key.path), key.public, read_team_name()
    if json:
        record = {"key": public, "fingerprint": compute_fingerprint(public), "name": name, "file": str(path)}
        return emit_json(record)
    print_line(f"{name or 'your team'}: key {public}, fingerprint {compute_fingerprint(public)}")
    if new:
        print_line(f"The private key is {path}: back it up, keep it secret. Anyone who has it can submit as the team.")
