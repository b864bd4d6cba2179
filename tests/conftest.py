"""Every test has a cache of its own kind: shared by the session where rows are only read, private where they break."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from warm_python import COMMAND, Python, warm_python

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts tests in the background has them ignore Ctrl-C, and whatever they start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Many small steps are slower on more threads, sums depend on their number, and other workers have the other cores.
# Libraries read it when they are loaded.
os.environ["OMP_NUM_THREADS"] = "1"

# Tables are as wide as these say, and who imports readline has them set.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)


# The same examples on every run, so that a test that fails fails again, and few of them. To look for new ones:
# make test ARGS="--hypothesis-profile=search".
settings.register_profile("default", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("search", max_examples=500, deadline=None)
settings.load_profile("default")


def pytest_collection_finish() -> None:
    """What is loaded by now stays: to look through it at every collection of garbage takes a tenth of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = {
        name: os.environ.pop(name, None)
        for name in ("FARSHIFT_PATH", "FARSHIFT_MIRRORS", "FARSHIFT_OFFLINE", "FARSHIFT_ACCEPT")
    }
    for name, folder in (("FARSHIFT_CACHE", "cache"), ("FARSHIFT_HOME", "home")):
        before[name] = os.environ.get(name)
        os.environ[name] = str(_of_all_workers(tmp_path_factory) / folder)
    yield
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this run of pytest: a worker of pytest-xdist has one of its own inside."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FARSHIFT_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def python() -> Iterator[Python]:
    """Processes of Python that have imported Farshift already."""
    with warm_python() as started:
        yield started


Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def farshift(python: Python) -> Cli:
    """Run the real command in a process of its own."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return python.run(*COMMAND, *arguments, env=os.environ | environment)

    return run


@pytest.fixture
def farshift_json(farshift: Cli) -> Callable[..., Any]:
    """Run a command with --json, expect success, and read the one document on its stdout."""

    def run(*arguments: object, **environment: str) -> Any:
        done = farshift(*arguments, "--json", **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """The command line, in this process: what it says, and its exit code. An error that it does not expect is raised."""
    from farshift import cli

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["farshift", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended, patch.dict(os.environ):  # --dry-run and --offline set variables
            cli.main()
        return subprocess.CompletedProcess(sys.argv, ended.value.code, *capfd.readouterr())

    return run
