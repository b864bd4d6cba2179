"""Every command says what it does, and what each of its arguments and options is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from farshift.cli import app, build_command


def walked(command: Any, name: str = "farshift") -> Iterator[tuple[str, Any]]:
    """A command and all below it, each with how it is called."""
    yield name, command
    for own, other in sorted(getattr(command, "commands", {}).items()):
        yield from walked(other, f"{name} {own}")


def commands() -> list[tuple[str, Any]]:
    return list(walked(typer.main.get_command(app)))


def test_every_command_says_what_it_does():
    assert len(commands()) > 50
    assert [name for name, command in commands() if not (command.help or "").strip()] == []


def test_every_argument_and_option_says_what_it_is():
    silent = [
        f"{name}: {parameter.name}"
        for name, command in commands()
        for parameter in command.params
        if not (getattr(parameter, "help", None) or "").strip()
    ]
    assert silent == []


def test_a_group_that_lists_its_commands_names_them_all():
    wrong = []
    for name, command in commands():
        colon, listed = (command.help or "").partition(": ")[1:]
        named = {item.strip() for item in listed.rstrip(".").split(",")}
        own = set(getattr(command, "commands", {}))
        if own and colon and named & own and named != own:
            wrong.append(f"{name}: {sorted(named ^ own)}")
    assert wrong == []


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
