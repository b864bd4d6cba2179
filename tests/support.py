"""What several tests need."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache, wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parent.parent

SHARED = ROOT.parent / "shared" / "data"
"""Public data files beside a checkout, where a machine has them; tests that need one skip where it is absent."""


@cache
def parse_file(path: Path) -> ast.Module:
    """A Python file of the repository as a tree: several tests read every file."""
    return ast.parse(path.read_text("utf-8"))


Command = Callable[..., subprocess.CompletedProcess[str]]
"""The fixture `command`: the command line with these arguments, in this process."""


def one_line_error(done: subprocess.CompletedProcess[str]) -> str:
    """The single line that a refused command leaves on stderr (progress lines aside); exit code 2, no traceback."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("farshift: error:")]
    assert len(errors) == 1, done.stderr
    assert done.stderr.rstrip().endswith(errors[0]), done.stderr
    return errors[0]


def run_in_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The real command in this process, for tests of what it says of many inputs."""
    from farshift.cli import main

    stored = sys.argv, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    sys.argv, sys.stdout, sys.stderr = ["farshift", *map(str, arguments)], out, err
    try:
        with patch.dict(os.environ):
            main()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv, sys.stdout, sys.stderr = stored
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return subprocess.CompletedProcess(list(map(str, arguments)), code, *texts)


def for_each(items: Iterable[Any]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """One test of what holds for each item, for many quick cases: it names every item for which it does not hold."""

    def test_of(check: Callable[[Any], None]) -> Callable[[], None]:
        @wraps(check)
        def test() -> None:
            wrong = []
            for item in items:
                try:
                    check(item)
                except AssertionError as error:
                    wrong.append(f"{item}: {error}")
                except Exception as error:
                    error.add_note(f"for {item}")
                    raise
            assert not wrong, "\n".join(wrong)

        del test.__wrapped__  # pytest would ask for a fixture named like the argument
        return test

    return test_of


class Heard:
    """Listens to what long work tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.done: list[int] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def advance(self, label: str, done: int, total: int | None, note: str = "") -> None:
        self.done.append(done)
