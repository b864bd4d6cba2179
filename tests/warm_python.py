"""Processes of Python that have already imported what Farshift imports: most of a short command's time is imports.

A server (this file, run as a program) imports once, and forks a process for each client. It gets the client's arguments,
environment, folder and standard streams, and ends as any process ends.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import inspect
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOMS = ("core", "splits", "loaders", "benchmarks", "baselines", "leaderboard", "cli")

LIBRARIES = """
cryptography.hazmat.primitives.serialization filelock jinja2 multiprocessing.pool numpy pandas
pyarrow.compute pyarrow.csv pyarrow.dataset pyarrow.ipc pyarrow.parquet pydantic rich.console rich.progress rich.table
sklearn.linear_model sklearn.tree sqlalchemy.orm torch torch._dynamo
"""
"""What Farshift loads when it is used. Left out is what reads variables when it is imported that tests set."""

OWN = ("FARSHIFT_", "PYTEST_", "KMP_", "RAY_", "TORCHINDUCTOR_", "COLUMNS", "LINES", "NO_COLOR", "PYTHONIOENCODING")
"""How variables begin that are read when they are needed, or that scikit-learn, Ray and torch set when they are
imported. Of any other, a library may have been the reader."""

COMMAND = ("-c", "from farshift.cli import main; main()")
"""Arguments of Python that make it the command `farshift`."""


@dataclass(frozen=True)
class Python:
    """Starts processes of Python. address: of a server that forks them, where there is one; environment: the server's."""

    address: str
    environment: Mapping[str, str]

    def run(
        self,
        *arguments: object,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run([sys.executable, *arguments])`, `-c CODE` or `-m NAME`, with its output as text. The process is
        forked where that makes no difference: where its environment is the server's but for Farshift's own variables."""
        command, environment = [str(argument) for argument in arguments], dict(os.environ if env is None else env)
        if not self.address or _others(environment) != _others(self.environment):
            return subprocess.run(
                [sys.executable, *command],
                capture_output=True,
                text=True,
                env=environment,
                cwd=cwd,
                timeout=timeout,
                check=False,
            )
        request = {"arguments": command, "env": environment, "cwd": str(cwd or Path.cwd())}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as nothing:
            status = _ask(self.address, request, [stream.fileno() for stream in (nothing, out, err)], timeout)
            if status is None:
                raise subprocess.TimeoutExpired(command, timeout)
            for stream in (out, err):
                stream.seek(0)
            return subprocess.CompletedProcess(command, status, out.read().decode(), err.read().decode())

    def link(self, folder: Path) -> None:
        """The commands `farshift` and `python` in a folder, for a shell's PATH; none where nothing can be forked."""
        if not self.address:
            return
        for name, first in (("farshift", COMMAND), ("python", ())):
            path = folder / name
            path.write_text(
                f"#!{sys.executable} -IS\n"
                "from __future__ import annotations\n"
                "import array, json, os, socket, sys\n"
                f"{inspect.getsource(_ask)}\n"
                f"arguments = {list(first)!r} + sys.argv[1:]\n"
                "request = {'arguments': arguments, 'env': dict(os.environ), 'cwd': os.getcwd()}\n"
                f"status = _ask({self.address!r}, request, [0, 1, 2], None)\n"
                "sys.exit(status if status >= 0 else 128 - status)\n"
            )
            path.chmod(0o755)


@contextmanager
def warm_python() -> Iterator[Python]:
    """A server for the length of a context, where the system has a way to keep one."""
    environment = os.environ.copy()
    if not hasattr(os, "pidfd_open"):
        yield Python("", environment)
        return
    with tempfile.TemporaryDirectory(prefix="warm") as folder:
        address = str(Path(folder, "socket"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(64)
            number = listener.fileno()
            server = subprocess.Popen(
                [sys.executable, __file__, str(number)],
                env=environment,
                pass_fds=[number],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
        try:
            yield Python(address, environment)
        finally:
            server.communicate()


def _others(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(OWN)}


def _ask(address: str, request: Mapping[str, Any], streams: Sequence[int], timeout: float | None) -> int | None:
    """The exit status of a process that the server forks; None where it did not end in time. It is killed then."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(timeout)
        line.connect(address)
        content = json.dumps(request).encode()
        passed = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))
        line.sendmsg([len(content).to_bytes(8, "big")], [passed])
        line.sendall(content)
        try:
            return int(line.recv(16))
        except TimeoutError:
            return None


def _serve(listener: socket.socket) -> None:
    """Until stdin is closed: a process for each client that comes. A client is told how its process ended; where the
    client is gone, its process is killed."""
    processes: dict[int, tuple[int, socket.socket]] = {}
    while True:
        lines = {line: number for number, (_, line) in processes.items() if line.fileno() >= 0}
        ready = select.select([sys.stdin, listener, *processes, *lines], [], [])[0]
        for gone in lines.keys() & set(ready):
            os.kill(processes[lines[gone]][0], signal.SIGKILL)
            gone.close()
        for ended in processes.keys() & set(ready):
            pid, line = processes.pop(ended)
            _, status = os.waitpid(pid, 0)
            with suppress(OSError):
                line.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            line.close()
            os.close(ended)
        if sys.stdin in ready:
            break
        if listener in ready:
            line, _ = listener.accept()
            pid = _start(line, [listener, *lines])
            processes[os.pidfd_open(pid)] = (pid, line)
    for pid, _ in processes.values():
        os.kill(pid, signal.SIGKILL)


def _start(line: socket.socket, others: Sequence[socket.socket]) -> int:
    """The process that a client asked for, by number."""
    size, streams, _, _ = socket.recv_fds(line, 8, 3)
    content = b""
    while len(content) < int.from_bytes(size, "big"):
        content += line.recv(1 << 20)
    pid = os.fork()
    if pid == 0:
        for other in (line, *others):
            other.close()
        _become(json.loads(content), streams)
    for stream in streams:
        os.close(stream)
    return pid


def _become(request: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be the process that a client asked for."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    encoding = request["env"].get("PYTHONIOENCODING", "utf-8")
    sys.stdin = os.fdopen(0, encoding=encoding, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    status: object = 0
    try:
        _execute(*request["arguments"])
    except SystemExit as error:
        status = error.code
        if not isinstance(status, int | None):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status or 0)


def _execute(first: str, *arguments: str) -> None:
    """What Python does with its arguments: `-m NAME ..`, `-c CODE ..` or `FILE ..`."""
    sys.path[0] = ""
    if first == "-m":
        sys.argv = [first, *arguments[1:]]
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = [first, *arguments[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(arguments[0], "<string>", "exec"), main.__dict__)
    else:
        assert not first.startswith("-"), first
        sys.argv = [first, *arguments]
        sys.path[0] = str(Path(first).resolve().parent)
        runpy.run_path(first, run_name="__main__")


def _import_all() -> None:
    names = LIBRARIES.split()
    for room in ROOMS:
        package = importlib.import_module(f"farshift.{room}")
        names += [result.name for result in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)


def _read_catalogues() -> None:
    """Definitions are cached by the text of their files: what a process reads of them was parsed before it began."""
    from farshift.benchmarks.benchmark import load_benchmarks
    from farshift.loaders.acquire.source import load_sources
    from farshift.splits.catalogue import list_manifests

    list_manifests()
    load_sources()
    load_benchmarks()


if __name__ == "__main__":
    _import_all()
    _read_catalogues()
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
