"""Workers: each leases one job at a time and scores it in a process with limits on time and memory.

If a worker dies, another one resumes its job when the lease expires. Submitting the same file twice changes nothing, so
a submission is entered once however often it is scored.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from ....core.errors import FarshiftError, get_first_line
from ....core.progress import log_message
from ...board import Board
from ..settings import ServerSettings, read_server_settings
from .files import describe_missing_files, sweep_files
from .job import Job
from .queue import Queue
from .stored_files import open_upload_files

_IDLE = 0.5
_SWEEP = 600.0
_TICK = 0.2
"""Seconds between checks of an empty queue, of files to delete, and of a job that is being scored."""

_JOBS = 100
"""Number of submissions after which the scoring process is replaced."""

_ENVIRONMENT = ("FARSHIFT_TOKEN",)
"""Environment variables that are removed for a scoring process."""


class Scorer:
    """The scoring process of one worker, started on first use and restarted after a failure."""

    def __init__(self, board: Path, settings: ServerSettings) -> None:
        self.board, self.settings = board, settings
        self._process: subprocess.Popen[bytes] | None = None
        self._done = 0

    def ask(self, job: Job, file: Path) -> None:
        """Start to score a job's file."""
        if self._process is None or self._process.poll() is not None or self._done >= _JOBS:
            self.end()
            self._start()
        assert self._process is not None and self._process.stdin is not None
        request = {"file": str(file.resolve()), "team": job.team, "team_key": job.team_key, "token": job.token}
        self._process.stdin.write(json.dumps({**request, "seconds": self.settings.scoring_seconds}).encode() + b"\n")
        self._process.stdin.flush()
        self._output = b""
        self._done += 1

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """Return the result; None if it is not ready after `seconds`."""
        assert self._process is not None and self._process.stdout is not None
        out = self._process.stdout.fileno()
        if not select.select([out], [], [], seconds)[0]:
            return None
        piece = os.read(out, 1 << 20)
        if not piece:
            return {"broke": self._ending()}
        self._output += piece
        if not self._output.endswith(b"\n"):
            return None
        answer: dict[str, Any] = json.loads(self._output)
        return answer

    def end(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):  # data that the dead process did not read
                    if pipe is not None:
                        pipe.close()
        self._process, self._done = None, 0

    def _start(self) -> None:
        module = f"{(__package__ or '')}.scoring"
        # -P: import nothing from the current folder.
        command = [sys.executable, "-P", "-m", module, str(self.board.resolve()), str(self.settings.scoring_bytes)]
        environment = {name: value for name, value in os.environ.items() if name not in _ENVIRONMENT}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )

    def _ending(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        self.end()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
        return f"the scoring process ended with {how}"


class Worker:
    """One worker of a board. `run` works until `stop` is set, or, with `once`, until no job is due."""

    def __init__(self, board: Board, queue: Queue, number: int = 0) -> None:
        self.queue, self.files = queue, open_upload_files(board)
        self.name = f"{socket.gethostname()[:40]}-{os.getpid()}-{number}"
        self._scorer = Scorer(board.path, queue.settings)
        self._swept = 0.0

    def run(self, stop: Event, once: bool = False) -> int:
        """Work, and return the number of jobs that ended."""
        ended = 0
        try:
            while not stop.is_set():
                try:
                    job = self._next()
                    if job is not None:
                        ended += self._work(job, stop)
                    elif once:
                        break
                    else:
                        stop.wait(_IDLE)
                except FarshiftError as error:  # such as a database that is temporarily unreachable
                    if once:
                        raise
                    log_message(f"a worker is waiting: {get_first_line(error)}")
                    stop.wait(_IDLE * 10)
        finally:
            self._scorer.end()
        return ended

    def _next(self) -> Job | None:
        if time.monotonic() - self._swept > _SWEEP or not self._swept:
            self._swept = time.monotonic()
            sweep_files(self.queue, self.files)
        return self.queue.take(self.name)

    def _work(self, job: Job, stop: Event) -> bool:
        try:
            file = self.files.here(job.id)
        except FarshiftError:  # the store does not respond, which is not the submission's fault
            self.queue.give_back(job)
            raise
        if file is None:
            return self.queue.broke(job, "its file is missing")
        result = self._scored(job, file, stop)
        if result is None:
            return False
        if "entries" in result:
            done = self.queue.entered(job, result["entries"])
            message = f"entered: {', '.join(result['entries'])}"
        elif "refused" in result:
            done = self.queue.refused(job, result["refused"], result["problems"])
            message = f"refused: {result['refused'][:300]}"
        else:
            done = self.queue.broke(job, result["broke"])
            message = f"attempt {job.attempts} of {self.queue.settings.attempts} broke: {result['broke'][:300]}"
        if done:
            self._clear(job)
            log_message(f"{job.id[:12]} of {job.owner}: {message}")
        return done

    def _clear(self, job: Job) -> None:
        """Delete the file of a job that has ended, unless the same id is queued again."""
        current = self.queue.find(job.id)
        if current is None or current.state in ("entered", "refused", "failed"):
            self.files.drop(job.id)

    def _scored(self, job: Job, file: Path, stop: Event) -> dict[str, Any] | None:
        """Return the result of a job; None if this worker has lost its lease."""
        settings = self.queue.settings
        began = extended = time.monotonic()
        try:
            self._scorer.ask(job, file)
        except OSError as error:
            self._scorer.end()
            return {"broke": f"the scoring process could not be started: {error.strerror}"}
        while (result := self._scorer.hear(_TICK)) is None:
            now = time.monotonic()
            if stop.is_set():
                self._scorer.end()
                self.queue.give_back(job)
                return None
            if now - began > settings.scoring_seconds:
                self._scorer.end()
                return {"broke": f"scoring took more than {settings.scoring_seconds:g} s"}
            if now - extended > settings.lease_seconds / 4:
                with suppress(FarshiftError):  # the database may be unreachable for as long as the lease lasts
                    if not self.queue.extend(job):
                        self._scorer.end()
                        return None
                    extended = now
        return result


class Workers:
    """Several workers of a board, each in a thread."""

    def __init__(self, board: Board, number: int, queue: Queue | None = None) -> None:
        self.queue = queue or Queue(board.ledger.store, read_server_settings(board.path))
        self._files = open_upload_files(board)
        self._stop, self.ended = Event(), 0
        self._workers = [Worker(board, self.queue, index) for index in range(number)]
        self._threads: list[Thread] = []

    def start(self, once: bool = False) -> Workers:
        """Start the threads."""
        if why := describe_missing_files(self.queue, self._files):
            log_message(why)
        self._threads = [Thread(target=self._run, args=(worker, once), daemon=True) for worker in self._workers]
        for thread in self._threads:
            thread.start()
        return self

    def _run(self, worker: Worker, once: bool) -> None:
        self.ended += worker.run(self._stop, once)

    def wait(self) -> None:
        """Wait until all threads have ended."""
        for thread in self._threads:
            while thread.is_alive():  # join without a timeout would block Ctrl-C
                thread.join(0.5)

    def stop(self) -> None:
        """Stop the workers now; their jobs return to the queue."""
        self._stop.set()
        self.wait()
