"""An error that nobody expected is one line at the command line: whose it is, where it was, and how to see more."""

from __future__ import annotations

import re

import pytest
from farshift.cli import machine
from support import one_line_error, run_in_process


def raising(error: Exception):
    def examine(_):
        raise error

    return examine


def test_a_defect_is_named_as_one_with_its_place_and_exit_code_70(monkeypatch):
    monkeypatch.setattr(machine, "check_machine", lambda _: 5)
    done = run_in_process("doctor")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 70
    assert re.fullmatch(
        r"farshift: error: farshift doctor: TypeError: 'int' object .* \(cli/\w+\.py, line \d+\): this is a bug in "
        "Farshift, please report it; FARSHIFT_DEBUG=1 shows the traceback",
        line,
    ), line


@pytest.mark.parametrize("error", [KeyError("x"), AssertionError(), RuntimeError("one\n  two"), UnicodeError("\x1b")])
def test_what_a_file_of_ones_own_raises_is_named_with_its_line(monkeypatch, error):
    monkeypatch.setattr(machine, "check_machine", raising(error))
    line = one_line_error(run_in_process("doctor"))
    assert line.startswith(f"farshift: error: farshift doctor: {type(error).__name__}")
    assert re.search(r"test_defects\.py, line \d+\); FARSHIFT_DEBUG=1 shows the traceback$", line)
    assert "defect of" not in line


def test_debugging_shows_the_traceback_of_a_defect(monkeypatch):
    monkeypatch.setattr(machine, "check_machine", raising(KeyError("x")))
    monkeypatch.setenv("FARSHIFT_DEBUG", "1")
    with pytest.raises(KeyError):
        run_in_process("doctor")


def test_too_little_memory_is_no_defect(monkeypatch):
    monkeypatch.setattr(machine, "check_machine", raising(MemoryError("Unable to allocate 9 GiB")))
    line = one_line_error(run_in_process("doctor"))
    assert line == "farshift: error: farshift doctor: out of memory (Unable to allocate 9 GiB)"
