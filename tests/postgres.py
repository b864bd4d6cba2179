"""A real PostgreSQL server on loopback for the length of a context, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

PASSWORD = "not-to-be-seen"

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


class Server:
    """A running server; `database()` gives the URL of a new, empty database in it."""

    def __init__(self, port: int) -> None:
        self.port, self._numbers = port, count()

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://owner:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        import psycopg

        name = f"board{next(self._numbers)}"
        with psycopg.connect(self._plain("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def _plain(self, database: str) -> str:
        return self.url(database).replace("+psycopg", "")

    def wait(self, process: subprocess.Popen[bytes], log: Path) -> None:
        import psycopg

        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self._plain("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start: {log.read_text()}") from None
                time.sleep(0.1)


def why_not() -> str:
    """Why no server can be started here; empty where one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if _binaries() is None:
        return "no PostgreSQL server binaries on this machine (Debian: apt-get install postgresql)"
    return "" if _owner() is not None else "PostgreSQL refuses to run as root, and there is no other user to be"


def _binaries() -> Path | None:
    result = shutil.which("initdb")
    return Path(result).parent if result else next(iter(_PLACES), None)


def _owner() -> dict[str, Any] | None:
    """Who the server runs as, as `subprocess` takes it: us, or somebody harmless where we are root."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return None


@contextmanager
def serving() -> Iterator[Server]:
    binaries, owner = _binaries(), _owner()
    assert binaries is not None and owner is not None, why_not()
    home = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        (home / "password").write_text(PASSWORD)
        if owner:
            for path in (home, home / "password"):
                os.chown(path, owner["user"], owner["group"])
        data = home / "data"
        subprocess.run(
            [
                binaries / "initdb",
                "-D",
                data,
                "-U",
                "owner",
                "-A",
                "scram-sha-256",
                "--pwfile",
                home / "password",
                "-N",
            ],
            check=True,
            capture_output=True,
            cwd=home,
            **owner,
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            server = Server(free.getsockname()[1])
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(server.port), "-k", home],
                stdout=log,
                stderr=log,
                cwd=home,
                **owner,
            )
        try:
            server.wait(process, home / "log")
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)  # an immediate shutdown: nothing of it is needed any more
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)
