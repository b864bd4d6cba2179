"""A board's server on loopback, as tests of handing in need it: the routes that take submissions in, faults on order."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import tomli_w
from farshift.leaderboard.board import Board
from farshift.leaderboard.server import submissions
from farshift.leaderboard.server.accounts import create_token
from farshift.leaderboard.server.app import add_error_handlers
from farshift.leaderboard.server.submissions import State, open_state
from farshift.leaderboard.server.worker import Worker, score_in_process
from fastapi import FastAPI
from running import PATIENCE, serving_app


@dataclass
class Intake:
    """A board and its server. faults: those of the next requests that hand in, in order: "503" (before anything is
    done), "lost" (all is done, and the connection breaks before the answer), or an answer of a server's own: (status,
    headers, body); None: no fault. requests: method, path and headers of all that came."""

    board: Board
    state: State
    token: str = ""
    url: str = ""
    faults: list[Any] = field(default_factory=list)
    requests: list[dict[str, str]] = field(default_factory=list)
    worker: Worker | None = None

    def post(self, content: Any, token: str | None = None, window: str = "", **headers: str) -> httpx2.Response:
        """Hand in, with its own token or another one ("": none)."""
        named = {"Content-Type": "application/zip"} | {name.replace("_", "-"): value for name, value in headers.items()}
        if token != "":
            named = {"Authorization": f"Bearer {token or self.token}"} | named
        url = f"{self.url}/api/v1/submissions{window and f'?window={window}'}"
        return httpx2.post(url, content=content, headers=named, timeout=PATIENCE)

    def get(self, id: str) -> httpx2.Response:
        """What it says of a submission."""
        return httpx2.get(f"{self.url}/api/v1/submissions/{id}", timeout=PATIENCE)

    def begin(self, body: bytes = b"", *headers: str) -> socket.socket:
        """A submission whose body has begun to arrive; without other headers, one of 1000 bytes."""
        line = socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2])), PATIENCE)
        head = ["POST /api/v1/submissions HTTP/1.1", "Host: x", "Content-Type: application/zip"]
        head += [f"Authorization: Bearer {self.token}", *(headers or ["Content-Length: 1000"])]
        line.sendall("\r\n".join([*head, "", ""]).encode() + body)
        return line

    def list_files(self) -> list[str]:
        """The names of the files that it holds of submissions."""
        folder = self.state.files.folder
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def work(self) -> int:
        """Score what is queued, here and now."""
        assert self.worker is not None
        return self.worker.run(threading.Event(), once=True)


class _Faulty:
    def __init__(self, app: Any, intake: Intake) -> None:
        self.app, self.intake = app, intake

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.intake.requests.append({"method": scope["method"], "path": scope["path"], **headers})
        faulty = scope["method"] == "POST" and self.intake.faults
        fault = self.intake.faults.pop(0) if faulty else None
        if fault is None:
            return await self.app(scope, receive, send)
        if fault == "503":
            fault = (503, {"Content-Type": "application/json"}, b'{"error": "busy"}')
        if fault == "lost":

            async def swallowed(message: Any) -> None:
                pass

            await self.app(scope, receive, swallowed)
            raise ConnectionError("the answer is lost")  # uvicorn breaks the connection off
        status, named, body = fault
        while (await receive()).get("more_body"):
            pass
        raw = [(name.lower().encode(), value.encode()) for name, value in named.items()]
        raw.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})


def make_app(state: State) -> FastAPI:
    """The routes that take submissions in."""
    app = FastAPI()
    app.state.intake = state
    app.include_router(submissions.router, prefix="/api/v1")
    add_error_handlers(app)
    return app


@contextmanager
def taking_in(board: Board, scored_by: Any = None, team: str = "us", **settings: Any) -> Iterator[Intake]:
    """A server of a board, with a token of a team. scored_by: stands in for the process that scores (`score_here`).
    settings: `[server]` of its settings.toml."""
    if settings:
        (Path(board.path) / "settings.toml").write_text(tomli_w.dumps({"server": settings}))
    state = open_state(board)
    worker = Worker(board, state.queue, score=scored_by or score_in_process)
    intake = Intake(board, state, create_token(board.ledger.store, team)[0], worker=worker)
    with serving_app(_Faulty(make_app(state), intake)) as intake.url:
        yield intake


def score_here(board: Path, settings: Any, job: Any, file: Path, *_: Any) -> dict[str, Any]:
    """Scores as the process of a worker does, in this one: what was checked or scored before is remembered."""
    from farshift.leaderboard.server.worker import answer_request, describe_job

    return answer_request({"board": str(board), "file": str(file), **describe_job(job)})


@contextmanager
def working(intake: Intake) -> Iterator[None]:
    """Score what is queued, in a thread, while the context lasts."""
    stop = threading.Event()
    assert intake.worker is not None
    thread = threading.Thread(target=intake.worker.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
