"""Every command says what it does, and what each of its arguments and options is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from farshift.cli import app


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
