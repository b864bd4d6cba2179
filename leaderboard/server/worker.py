"""Workers: each leases one job at a time and scores it in a process with limits on time and memory.

If a worker dies, another one resumes its job when the lease expires. Submitting the same file twice changes nothing, so
a submission is entered once however often it is scored. The scoring process uses the function of the command line,
`operations.submit.submit_runs`; it has the board's key, and ends with the worker that started it. A child process
without the key decodes the submission.

    python -P -m farshift.leaderboard.server.worker '{"board": .., "file": .., ..}'
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import ceil
from pathlib import Path
from threading import Event, Thread
from typing import Any

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...core.documents import parse_json
from ...core.errors import BadSubmission, FarshiftError, SubmissionRejected, Unavailable, get_first_line, shorten_list
from ...core.progress import log_message
from ...loaders.split import Split, is_cached, open_split
from ..board import Board
from ..ledger.store import format_iso_time
from ..operations.submit import submit_runs
from ..sealed.submit import submit_answers
from ..settings import ServerSettings, read_board_settings
from ..submission.validate import Submission, read_benchmark_names
from ..validation.archive import CARD
from ..validation.problem import Problems, to_problem_records
from .accounts import require_not_revoked, require_team
from .files import UploadFiles, sweep_files
from .queue import ENDED, Job, Queue

_IDLE = 0.5
_SWEEP = 600.0
_TICK = 0.2
"""Seconds between checks of an empty queue, of files to delete, and of a job that is being scored."""


Score = Callable[[Path, ServerSettings, Job, Path, float, Callable[[], bool]], dict[str, Any] | None]
"""Scores a job of a board, from its folder and settings, the job, its file, the seconds that it may take, and whether
it is to stop. Returns the result, or None if it was stopped."""


def score_in_process(
    board: Path, settings: ServerSettings, job: Job, file: Path, seconds: float, is_stopped: Callable[[], bool]
) -> dict[str, Any] | None:
    """Score a job in a process of its own, which is killed, with those that it started, when it takes too long."""
    request = {"board": str(board.resolve()), "file": str(file.resolve()), **describe_job(job)}
    limits = {"bytes": settings.scoring_bytes, "seconds": settings.scoring_seconds}
    # -P: import nothing from the current folder.
    command = [sys.executable, "-P", "-m", f"{__package__}.worker", json.dumps(request | limits)]
    environment = {name: value for name, value in os.environ.items() if name != "FARSHIFT_TOKEN"}
    environment["FARSHIFT_OFFLINE"] = "1"  # nothing is downloaded for a submission
    with tempfile.TemporaryFile() as out:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, env=environment, start_new_session=True
            )
        except OSError as error:
            return {"broke": f"the scoring process could not be started: {error.strerror}"}
        ends = time.monotonic() + seconds
        try:
            while process.poll() is None:
                if time.monotonic() > ends:
                    return {"broke": f"scoring took more than {settings.scoring_seconds:g} s"}
                if is_stopped():
                    return None
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_TICK)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        out.seek(0)
        output = out.read()
    if output.endswith(b"\n"):
        result: dict[str, Any] = parse_json(output)
        return result
    code = process.returncode
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
    return {"broke": f"the scoring process ended with {how}"}


class Worker:
    """One worker of a board. `run` works until `stop` is set, or, with `once`, until no job is due."""

    def __init__(self, board: Board, queue: Queue, number: int = 0, score: Score = score_in_process) -> None:
        self.board, self.queue, self.files, self.score = board, queue, UploadFiles(board), score
        self.name = f"{socket.gethostname()[:40]}-{os.getpid()}-{number}"
        self._swept = 0.0

    def run(self, stop: Event, once: bool = False) -> int:
        """Work, and return the number of jobs that ended."""
        ended = 0
        while not stop.is_set():
            try:
                if time.monotonic() - self._swept > _SWEEP or not self._swept:
                    self._swept = time.monotonic()
                    sweep_files(self.queue, self.files)
                job = self.queue.take(self.name)
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
        return ended

    def _work(self, job: Job, stop: Event) -> bool:
        try:
            file = self.files.here(job.id)
        except FarshiftError:  # the store does not respond, which is not the submission's fault
            self.queue.give_back(job)
            raise
        if file is None:
            where = "machines that share a queue must share the board's folder, or store its files in an object store"
            return self.queue.broke(job, f"its file is missing on the machine that scores: {where}")
        extended = time.monotonic()

        def is_stopped() -> bool:
            """Whether this worker ends, or has lost its lease, which is extended meanwhile."""
            nonlocal extended
            if stop.is_set():
                self.queue.give_back(job)
                return True
            if time.monotonic() - extended > self.queue.settings.lease_seconds / 4:
                with suppress(FarshiftError):  # the database may be unreachable for as long as the lease lasts
                    if not self.queue.extend(job):
                        return True
                    extended = time.monotonic()
            return False

        seconds = self.queue.limit_attempt(job)
        result = self.score(self.board.path, self.queue.settings, job, file, seconds, is_stopped)
        if result is None:
            return False
        if "entries" in result:
            done = self.queue.entered(job, result["entries"])
            message = f"entered: {job.window or ', '.join(result['entries'])}"
        elif "refused" in result:
            done = self.queue.refused(job, result["refused"], result["problems"])
            message = f"refused: {result['refused'][:300]}"
        else:
            done = self.queue.broke(job, result["broke"])
            message = f"attempt {job.attempts} of {self.queue.settings.attempts} failed: {result['broke'][:300]}"
        if done:
            # Delete its file, unless the same id is queued again.
            current = self.queue.find(job.id)
            if current is None or current.state in ENDED:
                self.files.drop(job.id)
            log_message(f"{job.id[:12]} of {job.owner}: {message}")
        return done


class Workers:
    """Several workers of a board, each in a thread."""

    def __init__(self, board: Board, number: int) -> None:
        self.queue = Queue(board.ledger.store, read_board_settings(board.path).server)
        self._stop, self.ended = Event(), 0
        self._workers = [Worker(board, self.queue, index) for index in range(number)]
        self._threads: list[Thread] = []

    def start(self, once: bool = False) -> Workers:
        """Start the threads."""
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


class NotPulled(Unavailable):
    """Data that the machine which scores does not have; the message names no file or address."""


class PulledBenchmark(Benchmark):
    """A benchmark that raises `NotPulled` if its data are not in the cache: nothing is downloaded or built for a
    submission."""

    @cached_property
    def split(self) -> Split:
        if not is_cached(self.manifest):
            name = self.definition.split
            raise NotPulled(f"{self.name}: its data are not on the machine that scores (farshift splits pull {name})")
        return open_split(self.definition.split)


def _refuse_others(file: Path, listed: Sequence[str], known: Mapping[str, Benchmark]) -> None:
    """Raise `BadSubmission` for a submission on a benchmark that this board does not score: it is not listed in the
    settings, or, if none is, its data are not in this machine's cache."""
    problems = Problems()
    why = f"it scores {shorten_list(listed)}" if listed else "its machine does not have the data"
    for name in read_benchmark_names(file):
        if name not in listed and (listed or name not in known or not is_cached(known[name].manifest)):
            problems.add("benchmark-unlisted", CARD, f"this board does not score {name}: {why}", "runs")
    problems.refuse_if_any("the submission")


log = logging.getLogger("farshift.scoring")


def describe_job(job: Job) -> dict[str, str]:
    """Return what the scoring process needs to know of a job."""
    known = {"team": job.team, "token": job.token}
    return known | {"window": job.window, "received": format_iso_time(job.created)}


def answer_request(request: dict[str, Any]) -> dict[str, Any]:
    """Score a submission, or check answers to a sealed window. Returns its `entries`, why it is `refused`, or why this
    attempt `broke`."""
    file, window = request["file"], request["window"]

    def allowed(submission: Submission) -> None:
        if request["token"]:
            require_not_revoked(board.ledger.store, request["token"])
            require_team(submission, request["team"])

    def describe(error: FarshiftError) -> str:  # without the path of the file on this machine
        return str(error).replace(file, "the submission").replace(Path(file).name, "the submission")

    try:
        board = Board(request["board"])
        if window:
            submit_answers(board, window, file, allowed=allowed, received=request["received"])
            return {"entries": []}
        pulled = {name: PulledBenchmark(item.definition, item.path) for name, item in load_benchmarks().items()}
        _refuse_others(Path(file), read_board_settings(board.path).server.benchmarks, pulled)
        entries, _ = submit_runs(board, Path(file), allowed, pulled)
    except BadSubmission as error:
        return {"refused": describe(error), "problems": to_problem_records(error)}
    except SubmissionRejected as error:
        return {"refused": describe(error), "problems": []}
    except NotPulled as error:
        return {"broke": str(error)}
    except FarshiftError as error:
        # Of this machine, its database or its files: its message may reveal their addresses.
        log.error("%s could not be scored: %s", Path(file).name[:12], describe(error))
        return {"broke": f"the board could not score it ({type(error).__name__}): see the server's log"}
    except MemoryError:
        return {"broke": "it needs more memory than this board allows for a submission"}
    except Exception as error:
        # The message may reveal details of this machine: it goes to the log, and the submitter sees only its type.
        log.exception("%s could not be scored", Path(file).name[:12])
        return {"broke": f"an internal error of Farshift ({type(error).__name__}): see the server's log"}
    return {"entries": entries}


def main() -> None:
    """Score the submission of the request in the first argument, and write the result to stdout as a line of JSON."""
    import resource

    request = json.loads(sys.argv[1])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    bound = request["bytes"] if hard == resource.RLIM_INFINITY else min(request["bytes"], hard)
    with suppress(OSError, ValueError):  # not every system has this limit
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    signal.alarm(ceil(request["seconds"]) + 30)  # some time after the worker should have ended this process
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    out = os.dup(1)
    os.dup2(2, 1)  # other output must not be read as a response
    # When standard input closes, the worker has ended, possibly during a submission: another worker resumes it.
    Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    os.write(out, json.dumps(answer_request(request)).encode() + b"\n")


if __name__ == "__main__":
    main()
