"""The parent's side of the reader process: passes open files to it, and ends it when it takes too long or crashes."""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from ...core.documents import parse_json
from ...core.errors import FarshiftError
from .limits import DECODED_TOTAL, WAIT, ExpectedTable, FileRejected, ReaderLimits
from .reader import LINE

if TYPE_CHECKING:
    import pyarrow as pa

_START_SECONDS = 60
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL")
"""The variables of this process's environment that the reader receives: no keys or tokens."""


class ReaderProcess:
    """The reader process of one submission, started at the first request. A context manager: the process has ended
    before any of its output is used. If it crashes or hangs it is ended and reported, and a new one reads the rest."""

    def __init__(self, limits: ReaderLimits | None = None) -> None:
        self.limits = limits or ReaderLimits()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._words: BinaryIO | None = None
        self._decoded = 0

    def __enter__(self) -> ReaderProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def finish(self) -> None:
        """End the reader when all files are read, so that its output can no longer change."""
        self.end()
        self._decoded = 0

    def card(self, file: BinaryIO) -> dict[str, Any]:
        """The tables of a card in `file`. Raises `FileRejected`."""
        tables: dict[str, Any] = parse_json(self._ask({"what": "card"}, file).read())
        return tables

    def predictions(self, file: BinaryIO, expected: ExpectedTable) -> pa.Table:
        """The table of a predictions file: plain columns with unchecked values, mapped from a temporary file. Raises
        `FileRejected`."""
        import pyarrow as pa

        out = self._ask({"what": "predictions", "wanted": vars(expected)}, file)
        size = os.fstat(out.fileno()).st_size
        self._decoded += size
        if self._decoded > DECODED_TOTAL:
            raise FileRejected.because("parquet-too-large", f"the decoded files together exceed {DECODED_TOTAL} bytes")
        mapped = mmap.mmap(out.fileno(), size, access=mmap.ACCESS_READ)
        return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped))).read_all()

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._line is not None:
            self._line.close()
        if self._words is not None:
            self._words.close()
        self._process = self._line = self._words = None

    def _start(self) -> None:
        """Start the process, and wait until it is ready."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        package = __package__ or ""
        # -P: do not import from the current folder.
        command = [sys.executable, "-P", "-m", f"{package}.reader", str(self.limits.memory)]
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._words = tempfile.TemporaryFile()  # noqa: SIM115
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=self._words, env=environment, cwd="/"
            )
        self._line = ours
        try:
            self._hear(time.monotonic() + _START_SECONDS)
        except (OSError, EOFError) as error:
            self._words.seek(0)
            output = self._words.read(100_000).decode("utf-8", "replace").strip().splitlines() or ["no output"]
            self.end()
            raise FarshiftError(f"the process that reads submissions cannot start here: {output[-1][:300]}") from error

    def _ask(self, request: dict[str, Any], file: BinaryIO) -> BinaryIO:
        """Have the reader decode `file`. Returns the file that it wrote."""
        file.flush()
        seconds = self.limits.seconds_for(os.fstat(file.fileno()).st_size)
        if self._process is None:
            self._start()
        assert self._line is not None
        out = tempfile.TemporaryFile()  # noqa: SIM115  (needed as long as the table that is mapped from it)
        try:
            message = json.dumps(request | {"seconds": seconds}).encode()
            socket.send_fds(self._line, [message], [file.fileno(), out.fileno()])
            reply = self._hear(time.monotonic() + WAIT * seconds)
        except TimeoutError as error:
            self.end()
            raise FileRejected.because("reader-time", f"took over {WAIT * seconds:.0f} s to read") from error
        except (BrokenPipeError, ConnectionError, EOFError) as error:
            raise self._broken(seconds) from error
        if "failed" in reply:
            raise FarshiftError(f"no temporary file can be written: {reply['failed']}; set TMPDIR to another disk")
        if reply["findings"]:
            raise FileRejected([(str(name), str(what), str(column)) for name, what, column in reply["findings"]])
        out.seek(0)  # the two processes share the file position
        return out

    def _hear(self, until: float) -> dict[str, Any]:
        """The reader's next line. Raises `TimeoutError`, or `EOFError` if it ended or sent too much."""
        assert self._line is not None
        received = b""
        while not received.endswith(b"\n"):
            self._line.settimeout(max(0.001, until - time.monotonic()))
            piece = self._line.recv(LINE)
            received += piece
            if not piece or len(received) > LINE:
                raise EOFError
        reply: dict[str, Any] = parse_json(received)
        return reply

    def _broken(self, seconds: float) -> FileRejected:
        """The rejection for a reader that ended in the middle of a file."""
        assert self._process is not None
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:  # still running: it sent too much
            self._process.kill()
            code = self._process.wait()
        self.end()
        if code == -signal.SIGXCPU:
            return FileRejected.because("reader-time", f"took over {seconds:.0f} s of processor time to read")
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
        return FileRejected.because("reader-crash", f"crashed the process that read it ({how})")
