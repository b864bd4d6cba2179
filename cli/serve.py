"""`farshift board serve`: a board behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from .terminal import print_line

app = typer.Typer()


@app.command()
def serve(
    location: Annotated[
        str,
        typer.Argument(metavar="DIR|EXPORT|URL", help="Board folder; an export or a URL is served read-only."),
    ],
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all network interfaces.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 for any free port.")
    ] = 8000,
    servers: Annotated[int, typer.Option("--servers", min=1, max=64, help="Number of server processes.")] = 1,
    workers: Annotated[
        Optional[int],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option(
            "--workers",
            min=0,
            max=64,
            help="Number of submissions scored at the same time, in a separate process; 0 if farshift board work "
            "scores them (default: workers in the settings.toml of the board, else 1).",
        ),
    ] = None,
    url_prefix: Annotated[
        str, typer.Option("--url-prefix", metavar="PATH", help="Path prefix of the public URL, such as /board.")
    ] = "",
    proxy_headers: Annotated[
        bool, typer.Option("--proxy-headers", help="Trust proxy headers (X-Forwarded-For) from localhost.")
    ] = False,
    open: Annotated[bool, typer.Option("--open", help="Open the board in a browser.")] = False,
) -> None:
    """Serve a board over HTTP: pages, API and submissions.

    Ctrl-C stops the server."""
    import webbrowser

    from ..core.plugins import read_toml
    from ..leaderboard.server.serving import serve_board as go
    from ..leaderboard.settings import read_server_settings
    from ..leaderboard.storage.readers import CARD

    card = Path(location) / CARD
    own = card.is_file() and "store" in read_toml(card)
    if workers is None:
        workers = read_server_settings(Path(location)).workers if own else 0

    def announce_address(address: str) -> None:
        print_line(f"{location} is served at {address} (Ctrl-C ends it)")
        if open:
            webbrowser.open(address)

    go(
        location,
        host,
        port,
        servers=servers,
        workers=workers if own else 0,
        url_prefix=url_prefix,
        proxy_headers=proxy_headers,
        on_ready=announce_address,
    )
