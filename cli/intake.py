"""Commands for the operator of a board server: access tokens, the queue and its workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.listings.plural import format_count
from .terminal import Json, emit_json, print_line, print_note, print_table, show_progress

if TYPE_CHECKING:
    from ..leaderboard.ledger.store import Store

app = typer.Typer()
token_app = typer.Typer(help="Manage the access tokens of a board server.", no_args_is_help=True)
app.add_typer(token_app, name="token")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Board folder.")]


@token_app.command("create")
def token_create(
    folder: Folder,
    team: Annotated[str, typer.Option("--team", metavar="NAME", help="Team that the token is for.")],
    key: Annotated[
        str,
        typer.Option(
            "--key",
            metavar="HEX",
            help="Public key of the team; submissions must be signed with it (default: any key).",
        ),
    ] = "",
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="S,S",
            help="Scopes, separated by commas: submit (submissions), hand-in (answers to sealed tests).",
        ),
    ] = "submit,hand-in",
    expires: Annotated[
        str, typer.Option("--expires", metavar="DAYS", help="Lifetime in days, such as 90d (default: no expiry).")
    ] = "",
    json: Json = False,
) -> None:
    """Create an access token and print it.

    The board stores only the SHA-256 digest of the token."""
    from ..leaderboard.server.tokens import create_token

    scopes = tuple(name.strip() for name in scope.split(",") if name.strip())
    token, token_info = create_token(_open_store(folder), team, key, scopes, expires)
    if json:
        return emit_json({"token": token, **token_info.record()})
    print_line(token)
    print_note(f"token {token_info.id} of {team}: it is not shown again. The team sets it as FARSHIFT_TOKEN")


@token_app.command("list")
def token_list(folder: Folder, json: Json = False) -> None:
    """List the access tokens of a board: team, state, scopes, dates."""
    from time import time

    from ..leaderboard.server.tokens import list_tokens

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
    print_table("", ["token", "team", "state", "scopes", "created", "expires"], rows)


@token_app.command("revoke")
def token_revoke(
    folder: Folder,
    token: Annotated[str, typer.Argument(metavar="ID", help="Token id, as printed by token list.")],
    reason: Annotated[str, typer.Option("--reason", help="Reason, written to the audit log.")] = "",
    json: Json = False,
) -> None:
    """Revoke a token."""
    from ..leaderboard.server.tokens import revoke_token

    revoked = revoke_token(_open_store(folder), token, reason)
    emit_json(revoked.record()) if json else print_line(f"token {revoked.id} of {revoked.team} is revoked")


def _print_queue(folder: Path, json: bool) -> None:
    from ..leaderboard.server.queue import Queue
    from ..leaderboard.settings import read_server_settings

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
    print_table("", ["submission", "owner", "state", "attempts", "received", "outcome"], rows)


def _describe_outcome(job: dict[str, Any]) -> str:
    if job["state"] == "queued":
        return f"position {job['position']}"
    return ", ".join(job["entries"]) or str(job["reason"])[:200]


@app.command()
def work(
    folder: Folder,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, help="Number of submissions scored at the same time.")
    ] = 1,
    once: Annotated[bool, typer.Option("--once", help="Exit when no queued submission is ready to be scored.")] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="Print the queued and finished submissions with their states, and exit.")
    ] = False,
    json: Json = False,
) -> None:
    """Score queued submissions until stopped (Ctrl-C or SIGTERM).

    Several of these processes can serve one board at the same time."""
    import signal

    from ..leaderboard.board import Board
    from ..leaderboard.server.worker import Workers

    if queue:
        return _print_queue(folder, json)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    board = Board(folder)
    with show_progress():
        signal.signal(signal.SIGTERM, stop)
        started_workers = Workers(board, workers).start(once)
        try:
            started_workers.wait()
        except KeyboardInterrupt:
            started_workers.stop()
    if json:
        return emit_json({"ended": started_workers.ended, **started_workers.queue.counts()})
    print_line(f"{folder}: {format_count(started_workers.ended, 'submission')} scored or refused")


@token_app.command("audit")
def token_audit(folder: Folder, json: Json = False) -> None:
    """Show the audit log: tokens, exceeded quotas, removed entries."""
    from ..leaderboard.server.tokens import read_events

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
    print_table("", ["time", "event", "by", "detail"], rows)


def _open_store(folder: Path) -> Store:
    from ..leaderboard.board import Board

    return Board(folder).ledger.store
