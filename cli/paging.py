"""The output of a command on stdout: buffered in a terminal, and paged if it is longer than the screen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

_buffered_lines: list[str] | None = None

WIDE = 200
"""Columns of a table where stdout is no terminal, and `COLUMNS` does not say how many there are."""

NARROW = 120
"""Columns of a terminal below which lists are cut to one line each."""


def count_terminal_columns() -> int:
    """How many columns a line of stdout has."""
    return get_terminal_size((WIDE, 24)).columns


def has_screen_width() -> bool:
    """Whether stdout has an end of the line: it is a terminal, or `COLUMNS` says how wide it is."""
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def write_text(text: str) -> None:
    """Text on stdout, whole lines."""
    if _buffered_lines is None:
        print(text)
    else:
        _buffered_lines.append(text)


def is_listing(arguments: list[str]) -> bool:
    """Return whether a command lists a catalogue, such as `splits list` or `reproduce --list`."""
    group, command = [*arguments[:2], "", ""][:2]
    if group in ("splits", "benchmarks", "baselines", "cache"):
        return command in ("list", "rules", "algorithms", "networks", "results")
    return group == "reproduce" and "--list" in arguments


@contextmanager
def page_output() -> Iterator[None]:
    """Within the context `write_text` buffers the text of a listing; at its end the text is printed, or shown by the
    pager if it is longer than the screen. The pager is that of the environment (`PAGER`; empty for none), else `less`.
    Other commands are never paged: a pager would block a shell's loop of runs. If stdout is not a terminal, nothing is
    buffered."""
    global _buffered_lines
    if not sys.stdout.isatty() or not is_listing(sys.argv[1:]):
        yield
        return
    _buffered_lines = []
    try:
        yield
    finally:
        flush_output()


def flush_output() -> None:
    """Print or page the buffered text."""
    global _buffered_lines
    text, _buffered_lines = "\n".join(_buffered_lines or ()), None
    if not text:
        return
    size = get_terminal_size()
    long = sum(max(1, -(-len(row) // size.columns)) for row in text.splitlines()) >= size.lines
    if not (long and _show_in_pager(text)):
        print(text)


def _show_in_pager(text: str) -> bool:
    """Whether a pager showed it."""
    pager = os.environ.get("PAGER", "less")
    if not pager.strip() or os.environ.get("TERM") in (None, "dumb"):
        return False
    environment = {"LESS": "FRX", **os.environ}  # less stops by itself where it fits after all, and keeps bold type
    try:
        # By the shell, as `PAGER` may have options.
        done = subprocess.run(
            pager,
            shell=True,
            input=text + "\n",
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            env=environment,
        )
    except (OSError, KeyboardInterrupt):
        return False
    return done.returncode != 127  # of a shell that finds no such program
