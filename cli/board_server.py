"""Commands of `farshift board` for a server: access tokens, the queue, its workers and the pages behind HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.text import format_count
from .options import command
from .output import emit_json, print_line, print_note, print_records, print_result
from .progress import show_progress

if TYPE_CHECKING:
    from ..leaderboard.ledger.store import Store

app = typer.Typer()
token_app = typer.Typer(help="Manage the access tokens of a board server.", no_args_is_help=True)
app.add_typer(token_app, name="token")


@command(token_app, "create")
def token_create(folder: Path, team: str, expires: str = "", json: bool = False) -> None:
    """Create an access token and print it.

    The board stores only the SHA-256 digest of the token.

    --team NAME: Team that the token is for.
    --expires DAYS: Lifetime in days, such as 90d (default: no expiry).
    """
    from ..leaderboard.server.accounts import create_token

    token, token_info = create_token(_open_store(folder), team, expires)
    print_result(json, {"token": token, **token_info.record()}, token)
    if not json:
        print_note(f"token {token_info.id} of {team}: it is not shown again. The team sets it as FARSHIFT_TOKEN")


@command(token_app, "list")
def token_list(folder: Path, json: bool = False) -> None:
    """List the access tokens of a board: team, state, dates."""
    from time import time

    from ..leaderboard.server.accounts import list_tokens

    records = [token.record() | {"state": token.state(time())} for token in list_tokens(_open_store(folder))]
    columns = {"token": "id"} | {name: name for name in ("team", "state", "created")}
    print_records(json, records, columns | {"expires": lambda token: token["expires"] or "never"})


@command(token_app, "revoke")
def token_revoke(folder: Path, token: str, json: bool = False) -> None:
    """Revoke a token.

    token ID: Token id, as printed by token list.
    """
    from ..leaderboard.server.accounts import revoke_token

    revoked = revoke_token(_open_store(folder), token)
    print_result(json, revoked.record(), f"token {revoked.id} of {revoked.team} is revoked")


def _print_queue(folder: Path, json: bool) -> None:
    from ..leaderboard.server.queue import Queue
    from ..leaderboard.settings import read_board_settings

    queue = Queue(_open_store(folder), read_board_settings(folder).server)
    records = [job.record() | {"owner": job.owner, "worker": job.worker} for job in queue.jobs()]
    if json:
        return emit_json({"counts": queue.counts(), "submissions": records})

    def describe_outcome(job: dict[str, Any]) -> str:
        return f"position {job['position']}" if job["state"] == "queued" else ", ".join(job["entries"]) or job["reason"]

    columns = {"submission": lambda job: job["id"][:12]} | {
        name: name for name in ("owner", "state", "attempts", "received")
    }
    print_records(False, records, columns | {"outcome": lambda job: str(describe_outcome(job))[:200]})


@command(app)
def work(
    folder: Path,
    workers: Annotated[int, typer.Option(min=1, max=64)] = 1,
    once: bool = False,
    queue: bool = False,
    json: bool = False,
) -> None:
    """Score queued submissions until stopped (Ctrl-C or SIGTERM).

    Several of these processes can serve one board at the same time.

    --workers: Number of submissions scored at the same time.
    --once: Exit when no queued submission is ready to be scored.
    --queue: Print the queued and finished submissions with their states, and exit.
    """
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
    record = {"ended": started_workers.ended, **started_workers.queue.counts()}
    print_result(json, record, f"{folder}: {format_count(started_workers.ended, 'submission')} scored or refused")


def _open_store(folder: Path) -> Store:
    from ..leaderboard.board import Board

    return Board(folder).ledger.store


@command(app)
def serve(
    folder: Path,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    servers: Annotated[int, typer.Option(min=1, max=64)] = 1,
    workers: Annotated[int | None, typer.Option(min=0, max=64)] = None,
    url_prefix: str = "",
    proxy_headers: bool = False,
    open: bool = False,
) -> None:
    """Serve a board over HTTP: pages, API and submissions.

    Ctrl-C stops the server.

    folder DIR: Board folder.
    --host: Address to listen on; 0.0.0.0 for all network interfaces.
    --port: Port to listen on; 0 for any free port.
    --servers: Number of server processes.
    --workers: Number of submissions scored at the same time, in a separate process; 0 if farshift board work
        scores them (default: workers in the settings.toml of the board, else 1).
    --url-prefix PATH: Path prefix of the public URL, such as /board.
    --proxy-headers: Trust proxy headers (X-Forwarded-For) from localhost.
    --open: Open the board in a browser.
    """
    import webbrowser

    from ..leaderboard.server.serving import serve_board as go
    from ..leaderboard.settings import read_board_settings

    def announce_address(address: str) -> None:
        print_line(f"{folder} is served at {address} (Ctrl-C ends it)")
        sys.stdout.flush()  # where it is a pipe or a file, nothing else follows
        if open:
            webbrowser.open(address)

    go(
        folder,
        host,
        port,
        servers=servers,
        workers=read_board_settings(folder).server.workers if workers is None else workers,
        url_prefix=url_prefix,
        proxy_headers=proxy_headers,
        on_ready=announce_address,
    )
