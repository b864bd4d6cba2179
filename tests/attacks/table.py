"""What the attacks came to, as a table: who attacks, what with, in how many cases, and whether the board held.

A test that repeats an attack is marked `@pytest.mark.attack(who, what)`. `make attack` runs all that are marked, with
this file as a plugin of pytest; docs/attacks.md lists them (`make pages`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

WHO = ("entrant", "operator", "visitor", "host", "disk")
"""Who may attack: one who submits; who runs the board; who reads it; whose machine or network is between; and what
nobody means to do: a disk, a crash, a full file system."""

_MARK = "attack"


@dataclass(frozen=True)
class Attack:
    """An attack, and what became of it in each of its cases: `passed`, `failed` or `skipped`."""

    who: str
    what: str
    cases: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Held only where some case ran, and none was lost."""
        if "failed" in self.cases:
            return "BROKEN"
        return "held" if "passed" in self.cases else "not run"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Carry who and what along with each report, also from the workers of pytest-xdist."""
    for item in items:
        for mark in item.iter_markers(_MARK):
            who, what = mark.args
            if who not in WHO:
                raise pytest.UsageError(f"{item.nodeid}: {who!r} is none of {', '.join(WHO)}")
            item.user_properties.append((_MARK, [who, what]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    result: dict[tuple[str, str], list[str]] = {}
    for outcome in ("passed", "failed", "skipped", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, output in getattr(report, "user_properties", ()):
                if name == _MARK:
                    state = "failed" if outcome == "error" else outcome
                    result.setdefault((output[0], output[1]), []).append(state)
    attacks = [Attack(who, what, tuple(cases)) for (who, what), cases in result.items()]
    for line in table(attacks):
        terminalreporter.write_line(line)


def table(attacks: Iterable[Attack]) -> list[str]:
    """The lines of the table, by who attacks."""
    rows = [(item.who, item.what, str(len(item.cases)), item.state) for item in in_order(attacks)]
    head = ("who", "attack", "cases", "state")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    broken = [row for row in rows if row[3] != "held"]
    return [*(line.rstrip() for line in lines), "", f"{len(rows) - len(broken)} of {len(rows)} attacks held"]


def in_order(attacks: Iterable[Attack]) -> list[Attack]:
    """By who attacks, then by what with."""
    return sorted(attacks, key=lambda one: (WHO.index(one.who), one.what))
