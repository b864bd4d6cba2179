"""How fast does a served board answer, beside a bare application that sends the same bytes, in the same run?

make bench-server

The board is made up, of 1,000 models on each of 40 benchmarks: it has no submissions, its tables are drawn, and from
there on all is as it is served. Readers ask for the first page over and over, each on a connection of its own, the
board's server and the bare one by turns; both run as `farshift board serve` runs them. Goals: p95 of at most 150 ms with
20 readers on 2 cores; a page of at most 300 KB compressed; first content in Chromium after at most 1 s.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import numpy as np
import uvicorn
from farshift.leaderboard.board import Board
from farshift.leaderboard.server import served_board
from farshift.leaderboard.server.app import create_app
from farshift.leaderboard.server.serving import open_listening_socket
from farshift.leaderboard.settings import write_baselines

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "benchmarks")]

ACCEPTED = "gzip"
TICK = os.sysconf("SC_CLK_TCK")


def bare(body: bytes) -> Callable[..., Any]:
    """An application that sends one body, whatever it is asked."""
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            return await send({"type": "lifespan.shutdown.complete"})
        await send(start)
        await send({"type": "http.response.body", "body": body})

    return app


class Drawn:
    """Tables that are there already, in the place of those that a server works out."""

    def __init__(self, models: int, tables: int) -> None:
        from made_board import large_board

        self.made, self.asked = large_board(models, tables), 0

    def snapshot(self, _: Any) -> Any:
        """The board, each time with a first table of its own, as after a new entry there."""
        self.asked += 1
        first, *others = self.made.views
        noted = replace(first, notes=(f"Asked {self.asked} times.",))
        head = replace(self.made.head, seq=self.made.head.seq + self.asked)
        return replace(self.made, head=head, views=(noted, *others))


def served(chosen: argparse.Namespace) -> None:
    """Serve what was asked for, and say where, until a line says to end; at any other line make tables anew."""
    if chosen.bare:
        app: Any = bare(chosen.bare.read_bytes())
    else:
        app = create_app(chosen.serve)
        served_board.take_snapshot = Drawn(chosen.models, chosen.tables).snapshot
    line = open_listening_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, proxy_headers=False, http="h11"))
    Thread(target=server.run, kwargs={"sockets": [line]}, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    print(line.getsockname()[1], flush=True)
    for number, output in enumerate(sys.stdin):  # which ends, too, when whoever started this is gone
        if output == "end\n":
            break
        write_baselines(Path(chosen.serve), {"scan/length": f"model {number}"})  # so there is something to show anew
    server.should_exit = True


class Serving:
    """This program once more, serving a board or a body in a process of its own."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, __file__, *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def used(self) -> float:
        """Seconds of the processor that it has taken; NaN where the system does not say."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return float("nan")
        return (int(fields[11]) + int(fields[12])) / TICK

    def settle(self) -> None:
        """Wait until it does nothing: the pages that nobody waits for are rendered."""
        before = -1.0
        while self.used() - before > 0.1:
            before = self.used()
            time.sleep(2)

    def memory(self) -> float:
        """MB."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return float("nan")
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def answer(self, **headers: str) -> tuple[int, bytes, str]:
        """Status, body and content coding of the first page."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", "/", headers=headers)
        result = connection.getresponse()
        return result.status, result.read(), result.getheader("Content-Encoding", "none")

    def shown_anew(self) -> None:
        """Have it make tables and pages anew, and wait until they are shown."""
        before = self._tag()
        self.say("again")
        while self._tag() == before:
            time.sleep(0.1)

    def _tag(self) -> str:
        """The entity tag of the first page, which has the ledger's head."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("HEAD", "/")
        result = connection.getresponse()
        result.read()
        connection.close()
        return result.getheader("ETag", "")

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.say("end")
        self.process.wait(60)


def read(port: int, over: Event) -> list[float]:
    """Milliseconds of each request of one reader."""
    took, room = [], bytearray(1 << 16)
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    while not over.is_set():
        began = time.perf_counter()
        connection.request("GET", "/", headers={"Accept-Encoding": ACCEPTED})
        answer = connection.getresponse()
        assert answer.status == 200
        while answer.readinto(room):
            pass
        took.append(1000 * (time.perf_counter() - began))
    connection.close()
    return took


def measured(what: str, of: Serving, readers: int, wait: Callable[[], Any]) -> None:
    """Readers at work as long as `wait` takes."""
    before, began, over = of.used(), time.perf_counter(), Event()
    with ThreadPoolExecutor(readers) as pool:
        reading = [pool.submit(read, of.port, over) for _ in range(readers)]
        try:
            wait()
        finally:
            over.set()
    took = np.concatenate([item.result() for item in reading])
    p50, p95 = np.percentile(took, [50, 95])
    seconds, each = time.perf_counter() - began, 1000 * (of.used() - before) / len(took)
    print(
        f"{what:24} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms   {len(took) / seconds:5.0f} requests/s   "
        f"processor {each:5.2f} ms a request   {seconds:4.1f} s   load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def painted(url: str, times: int = 5) -> list[float]:
    """Milliseconds from the start of a visit to the first content in Chromium, each visit with nothing kept."""
    from browsing import chromium

    result = []
    with chromium() as browser:
        for _ in range(times):
            context = browser.new_context(viewport={"width": 1600, "height": 900})
            page = context.new_page()
            page.goto(url, wait_until="load")
            script = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
            while (at := page.evaluate(script)) is None:  # the pages' policy lets nothing wait for it in them
                page.wait_for_timeout(20)
            result.append(float(at))
            context.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve or chosen.bare:
        return served(chosen)
    with TemporaryDirectory() as folder:
        board = Board.init(Path(folder) / "board", "A board to measure").path
        began = time.perf_counter()
        size = [f"--{name}={getattr(chosen, name)}" for name in ("models", "tables")]
        ours = Serving("--serve", str(board), *size)
        status = 503
        while status == 503:  # tables of this size take longer than a request waits
            status, body, coding = ours.answer(**{"Accept-Encoding": ACCEPTED})
        assert status == 200
        print(
            f"{chosen.models} models x {chosen.tables} benchmarks; the first answer after "
            f"{time.perf_counter() - began:.1f} s, {ours.used():.1f} of the processor"
        )
        ours.settle()
        print(f"all pages of benchmarks after {time.perf_counter() - began:.1f} s, {ours.used():.1f} of the processor")
        full = ours.answer()[1]
        print(f"the first page: {len(body):,} bytes ({coding}), {len(gzip.compress(full, 6)):,} by gzip, "
              f"{len(full):,} as HTML")  # fmt: skip
        page = Path(folder) / "page"
        page.write_bytes(body)
        limit = Serving("--bare", str(page))
        for _ in range(chosen.rounds):
            measured("the board's server", ours, chosen.readers, lambda: time.sleep(chosen.seconds))
            measured("the same bytes, bare", limit, chosen.readers, lambda: time.sleep(chosen.seconds))
        measured("while a record comes in", ours, chosen.readers, ours.shown_anew)
        shown = ", ".join(f"{item:.0f}" for item in painted(ours.url))
        print(f"first content in Chromium after {shown} ms   load {os.getloadavg()[0]:.1f}")
        limit.end()
        print(f"memory of the server: {ours.memory():.0f} MB, its processor {ours.used():.1f} s in all")
        ours.end()


if __name__ == "__main__":
    main()
