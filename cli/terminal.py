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

from ..core.listings.untrusted_text import LINES, escape_untrusted, escape_untrusted_json
from . import paging
from .paging import write_text
from .streams import has_all_characters

if TYPE_CHECKING:
    from rich.table import Table


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout instead of text.")]


def emit_json(value: Any) -> None:
    """One JSON document on stdout, in ASCII where stdout's encoding has not every character."""
    print(escape_untrusted_json(json.dumps(value, indent=1, ensure_ascii=not has_all_characters())))


def print_line(text: str) -> None:
    """One line on stdout; untrusted names are escaped."""
    write_text(escape_untrusted(text))


def print_block(text: str) -> None:
    """Several lines on stdout."""
    write_text(escape_untrusted(text, LINES))


def print_wrapped(text: str, indent: int = 0) -> None:
    """A line on stdout, broken at its spaces where the screen ends; what follows is indented by so many columns."""
    text = escape_untrusted(text, LINES)
    if paging.has_screen_width():
        text = "\n".join(
            wrap(
                text,
                paging.count_terminal_columns(),
                subsequent_indent=" " * indent,
                break_long_words=False,
                break_on_hyphens=False,
                drop_whitespace=True,
                replace_whitespace=False,
            )
            or [""]
        )
    write_text(text)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> None:
    """Print a table on stdout, numbers right-aligned, within the terminal's columns. Bold type only in a terminal, and
    never where `NO_COLOR` is set."""
    from rich.console import Console

    text, wide = StringIO(), paging.count_terminal_columns()
    styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    Console(file=text, width=wide, force_terminal=styled, no_color=not styled).print(_make_grid(title, columns, rows))
    write_text("\n".join(row.rstrip() for row in text.getvalue().rstrip().splitlines()))
    if caption:
        write_text("\n".join(_wrap_lines(escape_untrusted(caption, LINES), wide)))


_WORD = 10
"""Columns of a table's cell within which no word is broken, such as the ends of an interval."""
_NAME = 34
"""Columns that a name is given in a narrow list; longer ones push the title aside."""


def print_catalogue(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> None:
    """Print a list of named things. The first cell of a row is its name, the second its kind, the last its title. Where
    the terminal is narrow a row is one line of its name and as much of its title as there is room for, under a heading
    for each kind; where it is wide the list is a table; where there is none a row is one line, however long, which
    `grep` finds as a whole."""
    if not rows:
        return write_text(f"{caption}: every search word must occur in a name, a title or another field of an entry")
    wide = paging.count_terminal_columns()
    if wide >= paging.NARROW and paging.has_screen_width():
        return print_table("", columns, rows, caption)
    rows = [[escape_untrusted(cell) for cell in row] for row in rows]
    if not paging.has_screen_width():
        return write_text("\n".join([*_align_cells([columns, *rows]), *escape_untrusted(caption, LINES).splitlines()]))
    for kind in sorted({row[1] for row in rows}):
        write_text(f"{kind}:")
        for row in rows:
            if row[1] == kind:
                write_text(_truncate_text(f"  {row[0]:{_NAME}}  {row[-1]}", max(wide, len(row[0]) + 2)))
    if caption:
        write_text("\n".join(_wrap_lines(escape_untrusted(caption, LINES), wide)))


def _align_cells(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with a blank before them, as tables have, and two or more between cells. Columns are aligned up to the first
    of long cells, such as the counts of a split's parts, to whose width all that have none would be padded."""
    widest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    long = next((number for number, width in enumerate(widest) if number and width > _NAME), len(widest))
    padded_widths = [width if number < long else 0 for number, width in enumerate(widest)]
    cells = [[f"{cell:{width}}" for cell, width in zip(row, padded_widths, strict=True)] for row in rows]
    return [f" {'  '.join(row)}".rstrip() for row in cells]


def _truncate_text(text: str, most: int) -> str:
    return text.rstrip() if len(text) <= most else text[: most - 2].rstrip() + ".."


def _wrap_lines(text: str, wide: int) -> list[str]:
    """The lines of a text, those that are too long broken at spaces."""
    return [part for text_line in text.splitlines() for part in wrap(text_line, wide, break_on_hyphens=False) or [""]]


def print_table_on_stderr(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table on stderr: what an error is about, before its one line."""
    from rich.console import Console

    Console(stderr=True, width=None if sys.stderr.isatty() else 200).print(_make_grid("", columns, rows))


def _make_grid(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(
        title=Text(escape_untrusted(title)) if title else None, box=SIMPLE_HEAD, title_justify="left", pad_edge=False
    )
    if os.environ.get("NO_COLOR"):
        grid.header_style = grid.title_style = ""
    least = _compute_minimum_widths(columns, rows)
    for number, name in enumerate(columns):
        cells = [row[number] for row in rows]
        numeric = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        # The first two columns are names that people type and copy: never broken. The last of two is text.
        is_name = number < min(2, len(columns) - 1)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        heading = Text(escape_untrusted(str(name)))
        grid.add_column(heading, justify=justify, overflow="fold", no_wrap=is_name, min_width=least[number])
    for row in rows:
        grid.add_row(
            *(Text(f"{cell:,}" if isinstance(cell, int) else escape_untrusted(str(cell), LINES)) for cell in row)
        )
    return grid


def _compute_minimum_widths(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[int | None]:
    """How narrow each column may get, so that cells are broken at blanks, and words only where they are long; None for
    all where there is no room for that."""
    texts = [[name, *(str(row[number]) for row in rows)] for number, name in enumerate(columns)]
    names = texts[: min(2, len(columns) - 1)]
    minimums = [min(_WORD, max(len(word) for text in column for word in [*text.split(), ""])) for column in texts]
    name_width = sum(max(map(len, column)) for column in names) + sum(minimums[len(names) :])
    fits = name_width + 3 * (len(columns) - 1) + 2 <= paging.count_terminal_columns()
    return [each if fits else None for each in minimums]


def choose_columns(columns: Sequence[str], rows: Sequence[Sequence[Any]], spare: Sequence[str]) -> list[int]:
    """The numbers of the columns that a narrow terminal has room for without breaking words: all, less as many of the
    `spare` ones, in their order, as must go."""
    numbers = list(range(len(columns)))
    for name in spare:
        if None not in _compute_minimum_widths(
            [columns[number] for number in numbers], [[row[number] for number in numbers] for row in rows]
        ):
            break
        numbers.remove(columns.index(name))
    return numbers


@contextmanager
def show_progress() -> Iterator[None]:
    """Show the progress of long work on stderr within the context. stdout is for the result only: anything else that
    is printed meanwhile, by a user's model or a worker process, goes to stderr too."""
    from ..core.progress import report_to
    from .progress import Screen

    screen = Screen()
    sys.stdout.flush()
    saved_stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with report_to(screen):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(saved_stdout, 1)
        os.close(saved_stdout)
        screen.close()


def print_live_table(columns: Sequence[str], rows: Callable[[], tuple[list[list[Any]], bool]]) -> None:
    """Print a table on stdout and update it every second until `rows` returns that it is final; print it once, at the
    end, if stdout is not a terminal."""
    from rich.console import Console
    from rich.live import Live

    current_rows, final = rows()
    if sys.stdout.isatty():
        with Live(_make_grid("", columns, current_rows), console=Console(), auto_refresh=False) as live:
            while not final:
                time.sleep(1)
                current_rows, final = rows()
                live.update(_make_grid("", columns, current_rows), refresh=True)
        return
    while not final:
        time.sleep(1)
        current_rows, final = rows()
    print_table("", columns, current_rows)


def exit_with_error(message: str) -> None:
    """End this process at once, from any thread, with a one-line error: nothing else can stop code that hangs."""
    paging.flush_output()
    print_error(f"error: {message}")
    sys.stderr.flush()
    os._exit(2)


def is_debugging() -> bool:
    """Whether `FARSHIFT_DEBUG` is set, which shows tracebacks."""
    return os.environ.get("FARSHIFT_DEBUG", "") not in ("", "0")


def print_note(text: str) -> None:
    """Print one line on stderr."""
    print(escape_untrusted(text), file=sys.stderr)


def print_error(message: str) -> None:
    """Print an error as one line on stderr."""
    print(f"farshift: {escape_untrusted(' '.join(message.split()))}", file=sys.stderr)


def exit_if(failed: bool) -> None:
    """Exit with code 1 if a check failed."""
    if failed:
        raise typer.Exit(1)


def forbid_network(requested: bool) -> None:
    """Forbid the network to this process and the workers that it starts."""
    if requested:
        os.environ["FARSHIFT_OFFLINE"] = "1"


def format_estimate(estimate: dict[str, Any] | None, percent: bool = True) -> str:
    """An estimate with its interval, in percent or in its own unit; empty if there is none."""
    if estimate is None:
        return ""
    numbers = (estimate[key] for key in ("value", "low", "high"))
    value, low, high = (_drop_zero_sign(f"{100 * number:.1f}" if percent else f"{number:.3f}") for number in numbers)
    return f"{value} [{low}, {high}]"


def _drop_zero_sign(number: str) -> str:
    """Zero has no sign."""
    return number.lstrip("-") if float(number) == 0 else number
