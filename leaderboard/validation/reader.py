"""The reader: a separate process, and the only code that decodes untrusted input.

It receives a file and an empty one as open descriptors, decodes the first into the second, and reports the result in
one line of JSON. Its memory, time, files and environment are limited to what that needs. Once it is ready it opens no
file or connection, starts no process, and imports and evaluates nothing (an audit hook ends it otherwise). A card is
returned as JSON; predictions as an Arrow file of plain columns, without any metadata.

    python -P -m farshift.leaderboard.validation.reader MEMORY     (stdin: a socket)
"""

from __future__ import annotations

import json
import math
import mmap
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from .decoding import DISK, read_card, read_predictions
from .expected_table import ExpectedTable, FileRejected
from .limits import DECODED_BYTES

if TYPE_CHECKING:
    import socket

    import pyarrow as pa

LINE = 1 << 16
FORBIDDEN = 70
"""The longest line between the processes, and the exit code of a reader that attempted a forbidden operation."""


def answer_request(request: dict[str, Any], content: pa.Buffer, sink: BinaryIO) -> dict[str, Any]:
    """Process a request. Returns the problems of the file, if any, or what failed on this machine."""
    try:
        if request["what"] == "card":
            sink.write(json.dumps(read_card(content.to_pybytes())).encode())
        else:
            read_predictions(content, ExpectedTable(**request["wanted"]), sink)
        sink.flush()
    except MemoryError:
        return {"findings": [("reader-memory", "needs more memory than a reader has", "")]}
    except FileRejected as error:
        return {"findings": error.findings}
    except OSError as error:
        if error.errno not in DISK:
            raise
        return {"failed": os.strerror(error.errno)}
    return {"findings": []}


def _serve_requests(line: socket.socket) -> None:
    """Answer requests, each one line with two descriptors, until the other side closes the connection."""
    import socket

    import pyarrow as pa

    line.sendall(b'{"ready": true}\n')
    while True:
        request, files, _, _ = socket.recv_fds(line, LINE, 2)
        if not request:
            return
        source, target = files
        try:
            size = os.fstat(source).st_size
            _allow_seconds(json.loads(request)["seconds"])
            sink = os.fdopen(target, "wb")
            mapped = mmap.mmap(source, size, access=mmap.ACCESS_READ) if size else b""
            reply = answer_request(json.loads(request), pa.py_buffer(mapped), sink)
            with suppress(OSError):  # the disk is full, which `answer_request` reported
                sink.close()
        finally:
            os.close(source)
        line.sendall(json.dumps(reply).encode() + b"\n")


def _allow_seconds(seconds: float) -> None:
    """Limit the processor time from now on; the system ends the process after that."""
    import resource

    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used + seconds) + 1, hard))


def limit_resources(memory: int) -> None:
    """Limit this process: its address space (bytes), and the files that it may write and open."""
    import resource
    import signal

    bounds = {"AS": memory, "FSIZE": DECODED_BYTES, "CORE": 0, "NOFILE": 32}
    for name, most in bounds.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        allowed = resource.getrlimit(kind)[1]  # keep a lower limit of the parent (ulimit)
        bound = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (bound, bound))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit then raises an error


_FORBIDDEN_EVENTS = (
    "import", "exec", "compile", "marshal.", "pickle.", "ctypes.", "socket.", "subprocess.", "os.exec", "os.fork",
    "os.posix_spawn", "os.spawn", "os.system", "os.putenv", "shutil.", "urllib.", "http.", "ftplib.", "smtplib.",
)  # fmt: skip


def install_audit_hook() -> None:
    """End this process from now on if anything makes it import, evaluate, unpickle, connect, start a process or open a
    file by name."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_FORBIDDEN_EVENTS) or (event == "open" and not isinstance(arguments[0], int)):
            os._exit(FORBIDDEN)

    sys.addaudithook(hook)


def _warm_up() -> None:
    """Load everything that reading needs, by reading a small file of every kind."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    kinds = ExpectedTable("int64", 2, 1, 8)
    columns = {name: pa.nulls(1, pa.type_for_alias(kind)) for name, kind in kinds.columns.items()}
    # pa.nulls, because pa.array looks for pandas and loads it
    table = pa.table(columns | {"scores": pa.nulls(1, pa.list_(pa.float32(), 2))})
    for compression in ("snappy", "gzip", "zstd"):
        small = io.BytesIO()
        pq.write_table(table, small, compression=compression)
        read_predictions(pa.py_buffer(small.getvalue()), kinds, io.BytesIO())
    for refused in (b"x =", b"\xff", b"t = 2000-01-01T00:00:00Z"):
        answer_request({"what": "card"}, pa.py_buffer(refused), io.BytesIO())


def main() -> None:
    import socket

    line = socket.socket(fileno=0)
    _warm_up()
    limit_resources(int(sys.argv[1]))
    install_audit_hook()
    _serve_requests(line)


if __name__ == "__main__":
    main()
