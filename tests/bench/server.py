"""How fast does a served board answer, beside a bare application that sends the same bytes, in the same run?

make bench-server ARGS="--entries 200 --readers 20 --keep /tmp/board"

Readers ask for the first page over and over, each on a connection of its own, the board's server and the bare one by
turns. Goals: p95 of at most 150 ms with 20 readers on 2 cores; a page of at most 300 KB compressed.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import httpx2
import numpy as np
import uvicorn
from board import enter
from farshift.leaderboard.board import Board
from farshift.leaderboard.server.app import create_app

HEADERS = {"Accept-Encoding": "zstd, gzip"}


def started(app: Callable) -> tuple[str, uvicorn.Server]:
    """An application on loopback, in a thread."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://127.0.0.1:{listening.getsockname()[1]}/", server


def bare(body: bytes) -> Callable:
    """An application that sends one body, whatever it is asked."""
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            return await send({"type": "lifespan.shutdown.complete"})
        await send(start)
        await send({"type": "http.response.body", "body": body})

    return app


def read(url: str, seconds: float) -> list[float]:
    """Milliseconds of each request of one reader."""
    took = []
    with httpx2.Client(headers=HEADERS, timeout=60) as client:
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            with client.stream("GET", url) as answer:
                assert answer.status_code == 200
                for _ in answer.iter_raw():
                    pass
            took.append(1000 * (time.perf_counter() - began))
    return took


def measured(what: str, url: str, readers: int, seconds: float) -> None:
    with ThreadPoolExecutor(readers) as pool:
        took = np.concatenate(list(pool.map(lambda _: read(url, seconds), range(readers))))
    p50, p95 = np.percentile(took, [50, 95])
    print(f"{what:24} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms   {len(took) / seconds:7.0f} requests/s", flush=True)


def child(app: Callable) -> None:
    """Serve an application, and say where, and then how much memory is in use."""
    url, server = started(app)
    print(url, flush=True)
    sys.stdin.readline()
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    print(next((line.split()[1] for line in lines if line.startswith("VmRSS")), "0"), flush=True)
    server.should_exit = True


class Serving:
    """This program once more, serving a board or a body in a process of its own."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, __file__, *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self._line()

    def end(self) -> int:
        """Its memory in kB."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        used = int(self._line())
        self.process.wait(60)
        return used

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=100)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--keep", type=Path, help="Where the board is kept, and taken from when it is there.")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        return child(create_app(chosen.serve))
    if chosen.bare:
        return child(bare(chosen.bare.read_bytes()))
    with TemporaryDirectory() as folder:
        board = chosen.keep or Path(folder) / "board"
        if not board.exists():
            Board.init(board, "A board to measure")
            with ProcessPoolExecutor(2) as pool:
                list(pool.map(enter, [(board, number) for number in range(chosen.entries)]))
        ours = Serving("--serve", str(board))
        began = time.perf_counter()
        with httpx2.Client(headers=HEADERS, timeout=600) as client, client.stream("GET", ours.url) as answer:
            body = b"".join(answer.iter_raw())
            coding = answer.headers["Content-Encoding"]
        print(f"{len(Board(board).standings())} entries; the first answer after {time.perf_counter() - began:.1f} s")
        print(f"the first page has {len(body):,} bytes ({coding})")
        page = Path(folder) / "page"
        page.write_bytes(body)
        limit = Serving("--bare", str(page))
        for _ in range(2):
            measured("the board's server", ours.url, chosen.readers, chosen.seconds)
            measured("the same bytes, bare", limit.url, chosen.readers, chosen.seconds)
        limit.end()
        print(f"memory of the server: {ours.end() / 1024:.0f} MB")


if __name__ == "__main__":
    main()
