"""Every command says what it does, and what each of its arguments and options is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from farshift.cli import build_command
from farshift.cli.options import command as declare
from farshift.core.errors import BadDefinition

MOST = 45
OPERATORS = ("board token", "board sealed")
"""Groups of whoever runs a board. `farshift board --help` shows each as one line."""


def iterate_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Each group and command below a group, with how it is called."""
    for name, command in sorted(group.commands.items()):
        yield " ".join((*path, name)), command
        if hasattr(command, "commands"):
            yield from iterate_commands(command, (*path, name))


EVERY = dict(iterate_commands(build_command()))
COMMANDS = [name for name, command in EVERY.items() if not hasattr(command, "commands")]


@pytest.mark.parametrize("name", EVERY)
def test_a_command_and_each_of_its_parameters_say_what_they_are(name):
    assert re.match(r"[A-Z][a-z]+,? .*\.$", EVERY[name].help.split("\n\n")[0])
    assert [item.name for item in EVERY[name].params if not (getattr(item, "help", None) or "").strip()] == []


def test_there_are_few_commands():
    users = [name for name in COMMANDS if not name.startswith(OPERATORS)]
    assert 30 < len(users) <= MOST, f"{len(users)} commands: {', '.join(users)}"


def test_the_help_of_the_board_fits_a_screen(command):
    assert len(command("board", "--help").stdout.splitlines()) <= 40


@pytest.mark.parametrize(
    ("described", "told"),
    [
        ("--out FILE: Where to write.\n    --seeds Number of seeds.", "instead of '--seeds Number of seeds.'"),
        ("--seeds Number of seeds.", "instead of '--seeds Number of seeds.'"),
        ("--seeds: Number of seeds.", "does not describe out"),
        ("--out FILE: Where to write.\n    --sedes: Number of seeds.", "describes sedes, which is not a parameter"),
    ],
)
def test_a_docstring_that_cannot_be_read_is_an_error_with_the_command_and_the_line(described, told):
    def write(out: str, seeds: int) -> None:
        pass

    write.__doc__ = f"Write.\n\n    {described}\n    "
    with pytest.raises(BadDefinition, match=f"^command write: .*{re.escape(told)}"):
        declare(typer.Typer())(write)
