"""stdout and stderr as users have them: other encodings, closed, or read by a program that stops reading."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

NEW = (sys.executable, "-c", "from farshift.cli import main; main()")
"""The command in a process that begins with its streams as they are, closed ones too."""


def bash(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script whose "$@" is these words."""
    return subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=False)


@pytest.fixture
def first(python, tmp_path, command) -> tuple[str, ...]:
    """What starts a command: a listing of catalogues, which takes longest, is forked where the system has a way to."""
    python.link(tmp_path)
    path = tmp_path / "farshift"
    return (str(path),) if command[0] == "splits" and path.exists() else NEW


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_table_is_printed_in_any_encoding(farshift, encoding):
    done = farshift("splits", "show", "scan/length", PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert "----" in done.stdout


def test_what_an_encoding_lacks_is_written_as_its_escape(farshift):
    done = farshift("score", "Zürich表", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "Z\\xfcrich\\u8868" in done.stderr


def test_a_document_says_the_same_in_any_encoding(farshift):
    plain, narrow = (
        farshift("reproduce", "--list", "--json", PYTHONIOENCODING=encoding).stdout for encoding in ("utf-8", "ascii")
    )
    assert not plain.isascii()
    assert narrow.isascii()
    assert json.loads(plain) == json.loads(narrow)


@pytest.mark.parametrize("command", [("splits", "list"), ("splits", "list", "--json"), ("score", "--help")])
def test_a_reader_that_stops_reading_is_no_failed_check(first, command):
    done = bash('"$@" | true; echo "code ${PIPESTATUS[0]}"', *first, *command)
    assert done.stdout == "code 141\n"
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    "command",
    [("splits", "list"), ("splits", "list", "--json"), ("cache", "list"), ("score", "--help"), ("--version",)],
)
def test_a_full_disk_behind_stdout_is_bad_input(first, command):
    done = bash('"$@" > /dev/full', *first, *command)
    assert done.returncode == 2
    assert done.stderr == "farshift: error: [Errno 28] No space left on device\n"


def test_a_closed_stdout_or_stderr_is_written_nothing():
    assert bash('"$@" >&-', *NEW, "cache", "list").stderr == ""
    shown = bash('"$@" 2>&-', *NEW, "splits", "show", "nope")
    assert (shown.returncode, shown.stdout) == (2, "")


def test_of_a_new_token_stdout_has_the_token_alone(command, command_json, tmp_path):
    assert command("board", "init", tmp_path / "board").returncode == 0
    built = command("board", "token", "create", tmp_path / "board", "--team", "us")
    assert re.fullmatch(r"fs_[\w-]+\n", built.stdout)
    assert "of us: it is not shown again. The team sets it as FARSHIFT_TOKEN" in built.stderr
    assert command_json("board", "token", "create", tmp_path / "board", "--team", "us")["token"].startswith("fs_")
