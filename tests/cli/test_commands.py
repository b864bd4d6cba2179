"""The commands that there are: few, each described by a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from farshift.cli import build_command

MOST = 45
OPERATORS = ("board token", "board sealed")
"""Groups of whoever runs a board. `farshift board --help` shows each as one line."""


def iterate_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from iterate_commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(iterate_commands(build_command()))


def test_there_are_few_commands():
    users = [name for name in COMMANDS if not name.startswith(OPERATORS)]
    assert len(users) <= MOST, f"{len(users)} commands: {', '.join(users)}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_begins_with_a_sentence(name):
    first = COMMANDS[name].help.split("\n\n")[0]
    assert re.match(r"[A-Z][a-z]+ .*\.$", first), first


def test_the_help_of_the_board_fits_a_screen(command):
    assert len(command("board", "--help").stdout.splitlines()) <= 40
