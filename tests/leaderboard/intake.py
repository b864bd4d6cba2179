"""The smallest server that keeps the contract of docs/board.md: one board behind HTTP, on loopback."""

from __future__ import annotations

import json
import tempfile
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from farshift.core.errors import BadSubmission, FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit
from farshift.leaderboard.validation.problem import problems_of
from loopback import listening


@dataclass
class Intake:
    """A board, and the faults of its next answers, in order: "503" (before anything is done), "lost" (the submission is
    entered, and the connection breaks before the answer), or an answer of a server's own: (status, headers, body)."""

    board: Board
    faults: list[Any] = field(default_factory=list)
    requests: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    intake: Intake

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        self.intake.requests.append({"path": self.path, **{name: value for name, value in self.headers.items()}})
        content = self.rfile.read(int(self.headers["Content-Length"]))
        fault = self.intake.faults.pop(0) if self.intake.faults else None
        if fault == "503":
            return self._say(503, {"error": "busy"})
        if isinstance(fault, tuple):
            return self._send(*fault)
        stated = f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"
        if self.path != "/api/submissions":
            return self._say(404, {"error": "there is nothing here"})
        if self.headers["Content-Digest"] != stated:
            return self._say(400, {"error": "the body is not what Content-Digest says"})
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "submission.zip"
            file.write_bytes(content)
            try:
                entries, new = submit(self.intake.board, file)
            except BadSubmission as error:
                return self._say(422, {"error": str(error), "problems": problems_of(error)})
            except FarshiftError as error:
                return self._say(409, {"error": str(error)})
        if fault == "lost":
            self.close_connection = True
            return self.connection.close()
        return self._say(201 if new else 200, {"entries": entries, "new": new})

    def _say(self, status: int, said: dict[str, Any]) -> None:
        self._send(status, {"Content-Type": "application/json"}, json.dumps(said).encode())

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def taking_in(board: Board) -> Any:
    intake = Intake(board)
    with listening(_Handler, intake=intake) as intake.url:
        yield intake
