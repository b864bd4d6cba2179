"""Commands of whoever runs a board's server: access tokens, the queue and its workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.listings.plural import counted
from .terminal import Json, emit_json, line, note, table, watched

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
    from ..leaderboard.server.accounts.tokens import create

    scopes = tuple(name.strip() for name in scope.split(",") if name.strip())
    token, made = create(_store(folder), team, key, scopes, expires)
    if json:
        return emit_json({"token": token, **made.record()})
    line(token)
    note(f"token {made.id} of {team}: it is not shown again. The team gives it as FARSHIFT_TOKEN")


@token_app.command("list")
def token_list(folder: Folder, json: Json = False) -> None:
    """List the tokens of a board: team, state, scope, dates."""
    from time import time

    from ..leaderboard.server.accounts.tokens import tokens

    found = [one.record() | {"state": one.state(time())} for one in tokens(_store(folder))]
    if json:
        return emit_json(found)
    rows = [
        [one["id"], one["team"], one["state"], ", ".join(one["scopes"]), one["created"], one["expires"] or "never"]
        for one in found
    ]
    table("", ["token", "team", "state", "for", "created", "expires"], rows)


@token_app.command("revoke")
def token_revoke(
    folder: Folder,
    token: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `token list` prints it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why: the audit log states it.")] = "",
    json: Json = False,
) -> None:
    """Revoke a token."""
    from ..leaderboard.server.accounts.tokens import revoke

    gone = revoke(_store(folder), token, reason)
    emit_json(gone.record()) if json else line(f"token {gone.id} of {gone.team} is revoked")


def _print_queue(folder: Path, json: bool) -> None:
    from ..leaderboard.server.intake.queue import Queue
    from ..leaderboard.server.settings import server_settings

    queue = Queue(_store(folder), server_settings(folder))
    found = [job.record() | {"owner": job.owner, "worker": job.worker} for job in queue.jobs()]
    if json:
        return emit_json({"counts": queue.counts(), "submissions": found})
    rows = [
        [one["id"][:12], one["owner"], one["state"], one["attempts"], one["received"], _outcome(one)] for one in found
    ]
    table("", ["submission", "of", "state", "attempts", "received", "outcome"], rows)


def _outcome(one: dict[str, Any]) -> str:
    if one["state"] == "queued":
        return f"position {one['position']}"
    return ", ".join(one["entries"]) or str(one["reason"])[:200]


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
    with watched():
        signal.signal(signal.SIGTERM, stopped)
        at_work = Workers(board, workers).start(once)
        try:
            at_work.wait()
        except KeyboardInterrupt:
            at_work.stop()
    if json:
        return emit_json({"ended": at_work.ended, **at_work.queue.counts()})
    line(f"{folder}: {counted(at_work.ended, 'submission')} scored or refused")


@token_app.command("audit")
def token_audit(folder: Folder, json: Json = False) -> None:
    """Show the audit log: tokens, quotas exceeded, entries removed."""
    from ..leaderboard.server.accounts.audit import audit

    found = [vars(event) for event in audit(_store(folder))]
    if json:
        return emit_json(found)
    rows = [
        [one["time"], one["what"], one["who"], ", ".join(f"{name} {value}" for name, value in one["detail"].items())]
        for one in found
    ]
    table("", ["time", "what", "who", "detail"], rows)


def _store(folder: Path) -> Store:
    from ..leaderboard.board import Board

    return Board(folder).ledger.store
