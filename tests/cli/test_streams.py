"""stdout and stderr as users have them: other encodings, closed, or read by a program that stops reading."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from farshift.cli import main; main()"]


def bash(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script whose "$@" is the farshift command with these arguments."""
    return subprocess.run(
        ["bash", "-c", script, "bash", *COMMAND, *arguments], capture_output=True, text=True, check=False
    )


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
def test_a_reader_that_stops_reading_is_no_failed_check(command):
    done = bash('"$@" | true; echo "code ${PIPESTATUS[0]}"', *command)
    assert done.stdout == "code 141\n"
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    "command",
    [("splits", "list"), ("splits", "list", "--json"), ("cache", "list"), ("score", "--help"), ("--version",)],
)
def test_a_full_disk_behind_stdout_is_bad_input(command):
    done = bash('"$@" > /dev/full', *command)
    assert done.returncode == 2
    output = "standard output: no space left on device: free some space, or redirect the output"
    assert done.stderr == f"farshift: error: {output}\n"


def test_a_closed_stdout_or_stderr_is_written_nothing():
    assert bash('"$@" >&-', "splits", "list").stderr == ""
    shown = bash('"$@" 2>&-', "splits", "show", "nope")
    assert (shown.returncode, shown.stdout) == (2, "")
