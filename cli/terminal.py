"""Output of the command line: one JSON document or a table on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..core.listings.visible import LINES, visible, visible_json
from . import paging
from .paging import say
from .streams import all_characters

if TYPE_CHECKING:
    from rich.table import Table


Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a table.")]


def emit_json(value: Any) -> None:
    """One JSON document on stdout, in ASCII where stdout's encoding has not every character."""
    print(visible_json(json.dumps(value, indent=1, ensure_ascii=not all_characters())))


def line(text: str) -> None:
    """One line on stdout, whatever names stand in it."""
    say(visible(text))


def block(text: str) -> None:
    """Several lines on stdout."""
    say(visible(text, LINES))


def prose(text: str, indent: int = 0) -> None:
    """A line on stdout, broken at its spaces where the screen ends; what follows is indented by so many columns."""
    text = visible(text, LINES)
    if paging.on_a_screen():
        text = "\n".join(
            wrap(
                text,
                paging.columns(),
                subsequent_indent=" " * indent,
                break_long_words=False,
                break_on_hyphens=False,
                drop_whitespace=True,
                replace_whitespace=False,
            )
            or [""]
        )
    say(text)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> None:
    """Print a table on stdout, numbers right-aligned, within the terminal's columns. Bold type only in a terminal, and
    never where `NO_COLOR` is set."""
    from rich.console import Console

    text, wide = StringIO(), paging.columns()
    styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    Console(file=text, width=wide, force_terminal=styled, no_color=not styled).print(_grid(title, columns, rows))
    say("\n".join(row.rstrip() for row in text.getvalue().rstrip().splitlines()))
    if caption:
        say("\n".join(_broken(visible(caption, LINES), wide)))


_WORD = 10
"""Columns of a table's cell within which no word is broken, such as the ends of an interval."""
_NAME = 34
"""Columns that a name is given in a narrow list; longer ones push the title aside."""


def catalogue(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> None:
    """Print a list of named things. The first cell of a row is its name, the second its kind, the last its title. Where
    the terminal is narrow a row is one line of its name and as much of its title as there is room for, under a heading
    for each kind; where it is wide the list is a table; where there is none a row is one line, however long, which
    `grep` finds as a whole."""
    wide = paging.columns()
    if wide >= paging.NARROW and paging.on_a_screen():
        return table("", columns, rows, caption)
    rows = [[visible(cell) for cell in row] for row in rows]
    if not paging.on_a_screen():
        return say("\n".join([*_one_a_line([columns, *rows]), *visible(caption, LINES).splitlines()]))
    for kind in sorted({row[1] for row in rows}):
        say(f"{kind}:")
        for row in rows:
            if row[1] == kind:
                say(_cut(f"  {row[0]:{_NAME}}  {row[-1]}", max(wide, len(row[0]) + 2)))
    if caption:
        say("\n".join(_broken(visible(caption, LINES), wide)))


def _one_a_line(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with a blank before them, as tables have, and two or more between cells. Columns are aligned up to the first
    of long cells, such as the counts of a split's parts, to whose width all that have none would be padded."""
    widest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    long = next((number for number, width in enumerate(widest) if number and width > _NAME), len(widest))
    wanted = [width if number < long else 0 for number, width in enumerate(widest)]
    cells = [[f"{cell:{width}}" for cell, width in zip(row, wanted, strict=True)] for row in rows]
    return [f" {'  '.join(row)}".rstrip() for row in cells]


def _cut(text: str, most: int) -> str:
    return text.rstrip() if len(text) <= most else text[: most - 2].rstrip() + ".."


def _broken(text: str, wide: int) -> list[str]:
    """The lines of a text, those that are too long broken at spaces."""
    return [part for one in text.splitlines() for part in wrap(one, wide, break_on_hyphens=False) or [""]]


def grid_on_stderr(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table on stderr: what an error is about, before its one line."""
    from rich.console import Console

    Console(stderr=True, width=None if sys.stderr.isatty() else 200).print(_grid("", columns, rows))


def _grid(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=Text(visible(title)) if title else None, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    if os.environ.get("NO_COLOR"):
        grid.header_style = grid.title_style = ""
    least = _least(columns, rows)
    for number, name in enumerate(columns):
        cells = [row[number] for row in rows]
        numeric = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        # The first two columns are names that people type and copy: never broken. The last of two is told in words.
        whole = number < min(2, len(columns) - 1)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        heading = Text(visible(str(name)))
        grid.add_column(heading, justify=justify, overflow="fold", no_wrap=whole, min_width=least[number])
    for row in rows:
        grid.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else visible(str(cell), LINES)) for cell in row))
    return grid


def _least(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[int | None]:
    """How narrow each column may get, so that cells are broken at blanks, and words only where they are long; None for
    all where there is no room for that."""
    texts = [[name, *(str(row[number]) for row in rows)] for number, name in enumerate(columns)]
    names = texts[: min(2, len(columns) - 1)]
    found = [min(_WORD, max(len(word) for text in column for word in [*text.split(), ""])) for column in texts]
    taken = sum(max(map(len, column)) for column in names) + sum(found[len(names) :])
    fits = taken + 3 * (len(columns) - 1) + 2 <= paging.columns()
    return [each if fits else None for each in found]


def kept_columns(columns: Sequence[str], rows: Sequence[Sequence[Any]], spare: Sequence[str]) -> list[int]:
    """The numbers of the columns that a narrow terminal has room for without breaking words: all, less as many of the
    `spare` ones, in their order, as must go."""
    kept = list(range(len(columns)))
    for name in spare:
        if None not in _least([columns[one] for one in kept], [[row[one] for one in kept] for row in rows]):
            break
        kept.remove(columns.index(name))
    return kept


@contextmanager
def watched() -> Iterator[None]:
    """Show the progress of long work on stderr within the context. stdout is for the result only: anything else that
    is printed meanwhile, by a user's model or a worker process, goes to stderr too."""
    from ..core.progress import listening
    from .progress import Screen

    screen = Screen()
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with listening(screen):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        screen.close()


def live_table(columns: Sequence[str], rows: Callable[[], tuple[list[list[Any]], bool]]) -> None:
    """Print a table on stdout and update it every second until `rows` returns that it is final; print it once, at the
    end, if stdout is not a terminal."""
    from rich.console import Console
    from rich.live import Live

    found, final = rows()
    if sys.stdout.isatty():
        with Live(_grid("", columns, found), console=Console(), auto_refresh=False) as live:
            while not final:
                time.sleep(1)
                found, final = rows()
                live.update(_grid("", columns, found), refresh=True)
        return
    while not final:
        time.sleep(1)
        found, final = rows()
    table("", columns, found)


def give_up(message: str) -> None:
    """End this process at once, from any thread, with a one-line error: nothing else can stop code that hangs."""
    paging.release()
    complain(f"error: {message}")
    sys.stderr.flush()
    os._exit(2)


def debugging() -> bool:
    """Whether `FARSHIFT_DEBUG` is set, which shows tracebacks."""
    return os.environ.get("FARSHIFT_DEBUG", "") not in ("", "0")


def note(text: str) -> None:
    """Print one line on stderr."""
    print(visible(text), file=sys.stderr)


def complain(message: str) -> None:
    """Print an error as one line on stderr."""
    print(f"farshift: {visible(' '.join(message.split()))}", file=sys.stderr)


def exit_if(failed: bool) -> None:
    """Exit with code 1 if a check failed."""
    if failed:
        raise typer.Exit(1)


def go_offline(wanted: bool) -> None:
    """Forbid the network to this process and the workers that it starts."""
    if wanted:
        os.environ["FARSHIFT_OFFLINE"] = "1"


def view(estimate: dict[str, Any] | None, percent: bool = True) -> str:
    """An estimate with its interval, in percent or as it is; empty if there is none."""
    if estimate is None:
        return ""
    numbers = (estimate[key] for key in ("value", "low", "high"))
    value, low, high = (_unsigned(f"{100 * one:.1f}" if percent else f"{one:.3f}") for one in numbers)
    return f"{value} [{low}, {high}]"


def _unsigned(number: str) -> str:
    """Zero has no sign."""
    return number.lstrip("-") if float(number) == 0 else number
