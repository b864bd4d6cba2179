"""A child process with line-based communication: reads and writes do not block each other, and the process is always
terminated."""

from __future__ import annotations

import os
import signal
import subprocess
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import IO

GRACE = 1.0
"""Seconds that a process may take to exit after its stdin is closed, and again after a signal."""

_ERROR_LINES = 3
"""Lines at the end of its stderr that are repeated in an error."""


class OutputTimeout(Exception):
    """The process wrote no line in time."""


class ChildProcess:
    """A running command. Its process group is ended by `close`, with this object, and with this program.

    Raises `OSError` if the command cannot be started.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Otherwise a Python program buffers its output in blocks.
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            # Its own process group: child processes are ended with it, and Ctrl-C reaches this program only.
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._lines: Queue[bytes | None] = Queue()
        self._last_words: deque[str] = deque(maxlen=_ERROR_LINES)
        self._to_write: Queue[bytes | None] = Queue()
        # The threads hold pipes and queues, never this object: otherwise it could not be freed while they run.
        _start_thread(_write_lines, self._process.stdin, self._to_write)
        _start_thread(_read_lines, self._process.stdout, self._lines)
        self._listening = _start_thread(_read_error_lines, self._process.stderr, self._last_words)
        self._finalizer = weakref.finalize(self, _end_process, self._process, self._to_write)

    def write(self, lines: Sequence[bytes]) -> None:
        """Queue lines to be written as fast as the process reads them."""
        self._to_write.put(b"".join(line + b"\n" for line in lines))

    def read(self, timeout: float) -> bytes | None:
        """Return the next line of the output, or None at its end; `OutputTimeout` after `timeout`
        seconds."""
        try:
            return self._lines.get(timeout=timeout)
        except Empty:
            raise OutputTimeout from None

    def exit_summary(self) -> str:
        """Return one line with how the process ended and the last line of its stderr."""
        try:
            code = self._process.wait(GRACE)
            self._listening.join(GRACE)
        except subprocess.TimeoutExpired:
            return "closed its output"
        how = f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        words = " | ".join(self._last_words)
        return f"{how}: {words[-300:]}" if words else f"{how} and wrote nothing to stderr"

    def close(self) -> None:
        """End the process and its child processes."""
        self._finalizer()


def _start_thread(work: Callable[..., None], *arguments: object) -> Thread:
    thread = Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def _write_lines(pipe: IO[bytes], to_write: Queue[bytes | None]) -> None:
    with suppress(OSError), pipe:  # that the process ended shows at the end of its output
        while (content := to_write.get()) is not None:
            pipe.write(content)
            pipe.flush()


def _read_lines(pipe: IO[bytes], lines: Queue[bytes | None]) -> None:
    with pipe:
        for line in pipe:
            lines.put(line)
    lines.put(None)


def _read_error_lines(pipe: IO[bytes], words: deque[str]) -> None:
    with pipe:
        for line in pipe:
            if text := " ".join(line.decode("utf-8", "replace").split()):
                words.append(text)


def _end_process(process: subprocess.Popen[bytes], to_write: Queue[bytes | None]) -> None:
    """Wait for the process to exit, then terminate it, then kill it, with a delay before each step. Its child processes
    are killed without a delay."""
    to_write.put(None)
    for hard in (False, True):
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        _send_signal(process, hard)
    process.wait()


def _send_signal(process: subprocess.Popen[bytes], hard: bool) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)
    elif hard:
        process.kill()
    else:
        process.terminate()
