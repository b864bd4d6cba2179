"""Commands of whoever runs a board's server: access tokens, the queue and its workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.listings.plural import format_count
from .terminal import Json, emit_json, print_line, print_note, print_table, show_progress

if TYPE_CHECKING:
    from ..leaderboard.ledger.store import Store

app = typer.Typer()
token_app = typer.Typer(help="Access tokens, with which teams submit to a board's server.", no_args_is_help=True)
app.add_typer(token_app, name="token")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The board's folder.")]


@token_app.command("create")
def token_create(
    folder: Folder,
    team: Annotated[str, typer.Option("--team", metavar="NAME", help="The team that submits with it.")],
    key: Annotated[
        str, typer.Option("--key", metavar="HEX", help="The team's public key, which must have signed them.")
    ] = "",
    scope: Annotated[
        str, typer.Option("--scope", metavar="S,S", help="submit, hand-in (answers to sealed windows), or both.")
    ] = "submit,hand-in",
    expires: Annotated[str, typer.Option("--expires", metavar="DAYS", help="Such as 90d. Default: never.")] = "",
    json: Json = False,
) -> None:
    """Create a token and print it. The board stores its sha256 only."""
    from ..leaderboard.server.accounts.tokens import create_token

    scopes = tuple(name.strip() for name in scope.split(",") if name.strip())
    token, token_info = create_token(_open_store(folder), team, key, scopes, expires)
    if json:
        return emit_json({"token": token, **token_info.record()})
    print_line(token)
    print_note(f"token {token_info.id} of {team}: it is not shown again. The team gives it as FARSHIFT_TOKEN")


@token_app.command("list")
def token_list(folder: Folder, json: Json = False) -> None:
    """List the tokens of a board: team, state, scope, dates."""
    from time import time

    from ..leaderboard.server.accounts.tokens import list_tokens

    records = [token.record() | {"state": token.state(time())} for token in list_tokens(_open_store(folder))]
    if json:
        return emit_json(records)
    rows = [
        [
            token["id"],
            token["team"],
            token["state"],
            ", ".join(token["scopes"]),
            token["created"],
            token["expires"] or "never",
        ]
        for token in records
    ]
    print_table("", ["token", "team", "state", "for", "created", "expires"], rows)


@token_app.command("revoke")
def token_revoke(
    folder: Folder,
    token: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `token list` prints it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why: the audit log states it.")] = "",
    json: Json = False,
) -> None:
    """Revoke a token."""
    from ..leaderboard.server.accounts.tokens import revoke_token

    gone = revoke_token(_open_store(folder), token, reason)
    emit_json(gone.record()) if json else print_line(f"token {gone.id} of {gone.team} is revoked")


def _print_queue(folder: Path, json: bool) -> None:
    from ..leaderboard.server.intake.queue import Queue
    from ..leaderboard.server.settings import read_server_settings

    queue = Queue(_open_store(folder), read_server_settings(folder))
    records = [job.record() | {"owner": job.owner, "worker": job.worker} for job in queue.jobs()]
    if json:
        return emit_json({"counts": queue.counts(), "submissions": records})
    rows = [
        [
            record["id"][:12],
            record["owner"],
            record["state"],
            record["attempts"],
            record["received"],
            _describe_outcome(record),
        ]
        for record in records
    ]
    print_table("", ["submission", "of", "state", "attempts", "received", "outcome"], rows)


def _describe_outcome(job: dict[str, Any]) -> str:
    if job["state"] == "queued":
        return f"position {job['position']}"
    return ", ".join(job["entries"]) or str(job["reason"])[:200]


@app.command()
def work(
    folder: Folder,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Submissions scored at once.")] = 1,
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is due.")] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="Print the submissions over HTTP and the state of each, and stop.")
    ] = False,
    json: Json = False,
) -> None:
    """Score queued submissions until stopped (Ctrl-C or SIGTERM).

    Any number of these processes may work on one board."""
    import signal

    from ..leaderboard.board import Board
    from ..leaderboard.server.intake.worker import Workers

    if queue:
        return _print_queue(folder, json)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    board = Board(folder)
    with show_progress():
        signal.signal(signal.SIGTERM, stopped)
        at_work = Workers(board, workers).start(once)
        try:
            at_work.wait()
        except KeyboardInterrupt:
            at_work.stop()
    if json:
        return emit_json({"ended": at_work.ended, **at_work.queue.counts()})
    print_line(f"{folder}: {format_count(at_work.ended, 'submission')} scored or refused")


@token_app.command("audit")
def token_audit(folder: Folder, json: Json = False) -> None:
    """Show the audit log: tokens, quotas exceeded, entries removed."""
    from ..leaderboard.server.accounts.audit import read_events

    records = [vars(event) for event in read_events(_open_store(folder))]
    if json:
        return emit_json(records)
    rows = [
        [
            record["time"],
            record["what"],
            record["who"],
            ", ".join(f"{name} {value}" for name, value in record["detail"].items()),
        ]
        for record in records
    ]
    print_table("", ["time", "what", "who", "detail"], rows)


def _open_store(folder: Path) -> Store:
    from ..leaderboard.board import Board

    return Board(folder).ledger.store
