"""Text and tables on stdout; errors and progress on stderr."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from functools import wraps
from io import StringIO
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import typer

from ..core.errors import FarshiftError
from ..core.settings import read_settings
from ..core.text import LINES, escape_untrusted, escape_untrusted_json

if TYPE_CHECKING:
    from rich.table import Table


def emit_json(value: Any) -> None:
    """One JSON document on stdout, in ASCII where stdout's encoding has not every character."""
    print(escape_untrusted_json(json.dumps(value, indent=1, ensure_ascii=not has_all_characters())))


def print_line(text: str) -> None:
    """One line on stdout; untrusted names are escaped."""
    print(escape_untrusted(text))


def print_block(text: str) -> None:
    """Several lines on stdout."""
    print(escape_untrusted(text, LINES))


def print_wrapped(text: str, indent: int = 0) -> None:
    """A line on stdout, broken at its spaces where the screen ends; what follows is indented by so many columns."""
    text = escape_untrusted(text, LINES)
    if has_screen_width():
        columns, rest = count_terminal_columns(), " " * indent
        pieces = wrap(
            text,
            columns,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
        )
        text = "\n".join(pieces)
    print(text)


Columns = Mapping[str, str | Callable[[Any], Any]]
"""A table's columns by heading: a key of its records, or a function of one."""


def print_result(json: bool, record: Any, *lines: str) -> None:
    """What a command did: its record as one JSON document, or lines of text."""
    if json:
        return emit_json(record)
    for text in lines:
        print_line(text)


def print_records(
    json: bool,
    records: Sequence[Any],
    columns: Columns,
    caption: str = "",
    show: Callable[..., None] | None = None,
) -> None:
    """Records as one JSON document, or as a table (or by `show`, such as `print_catalogue`). A list in a cell is joined
    by commas; None is empty."""
    if json:
        return emit_json(records)

    def read(record: Any, column: str | Callable[[Any], Any]) -> Any:
        value = column(record) if callable(column) else record[column]
        return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list | tuple) else value

    rows = [[read(record, column) for column in columns.values()] for record in records]
    show(list(columns), rows, caption) if show else print_table("", list(columns), rows, caption)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> None:
    """Print a table on stdout, numbers right-aligned, within the terminal's columns; each row is a paragraph where they
    are too few. Bold type only in a terminal, and never where `NO_COLOR` is set."""
    from rich.console import Console

    text, wide = StringIO(), count_terminal_columns()
    styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    if sum(_compute_minimum_widths(columns, rows)) + 3 * len(columns) - 1 > wide:
        print("\n".join([*filter(None, [escape_untrusted(title)]), *_stack_rows(columns, rows, wide, styled)]))
    else:
        console = Console(file=text, width=wide, force_terminal=styled, no_color=not styled)
        console.print(_make_grid(title, columns, rows))
        print("\n".join(row.rstrip() for row in text.getvalue().rstrip().splitlines()))
    if caption:
        print("\n".join(_wrap_lines(escape_untrusted(caption, LINES), wide)))


def _stack_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], wide: int, styled: bool) -> Iterator[str]:
    """Each row as a line of its names, bold if `styled`, and its other cells below, with headings; numbers are not
    broken."""
    names = _count_names(columns)
    for row in rows:
        cells = [_format_cell(cell) for cell in row]
        for line in wrap("  ".join(cells[:names]), wide, subsequent_indent="    ", break_on_hyphens=False):
            yield f"\x1b[1m{line}\x1b[0m" if styled else line
        pairs = [(column, cell) for column, cell in zip(columns[names:], cells[names:], strict=True) if cell]
        numbers = [(f"{column} {cell}", re.search("[a-z]", cell) is None) for column, cell in pairs]
        text = "; ".join(pair.replace(" ", _UNBROKEN) if unbroken else pair for pair, unbroken in numbers)
        for line in wrap(text, wide, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False):
            yield line.replace(_UNBROKEN, " ")


def _format_cell(cell: Any) -> str:
    return f"{cell:,}" if isinstance(cell, int) else escape_untrusted(str(cell), LINES)


_UNBROKEN = "\N{NO-BREAK SPACE}"
_WORD = 10
"""Columns of a table's cell within which no word is broken; a number or a name is never broken."""
_NARROWEST = 20
"""Columns of a table to which the names of a row may be broken."""
_NAME = 34
"""Columns that a name is given in a narrow list; longer ones push the title aside."""


def print_catalogue(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    words: Sequence[str] = (),
    find: Callable[[str], Sized] | None = None,
) -> None:
    """Print a list of named things. The first cell of a row is its name, the second its kind, the last its title. Where
    the terminal is narrow a row is one line of its name and as much of its title as there is room for, under a heading
    for each kind; where it is wide the list is a table; where there is none a row is one line, however long, which
    `grep` finds as a whole. words, find: the search; if it found nothing, what each of its words finds alone."""
    if not rows:
        alone = [f"{word!r} {len(find(word)):,}" for word in words] if find and len(words) > 1 else []
        counts = f"; alone, {', '.join(alone)}" if alone else ""
        return print(f"{caption}: every search word must occur in a name, a title or another field of an entry{counts}")
    wide = count_terminal_columns()
    if wide >= NARROW and has_screen_width():
        return print_table("", columns, rows, caption)
    rows = [[escape_untrusted(cell) for cell in row] for row in rows]
    if not has_screen_width():
        return print("\n".join([*_align_cells([columns, *rows]), *escape_untrusted(caption, LINES).splitlines()]))
    for kind in sorted({row[1] for row in rows}):
        print(f"{kind}:")
        for row in rows:
            if row[1] == kind:
                print(_truncate_text(f"  {row[0]:{_NAME}}  {row[-1]}", max(wide, len(row[0]) + 2)))
    if caption:
        print("\n".join(_wrap_lines(escape_untrusted(caption, LINES), wide)))


def _align_cells(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with a blank before them, as tables have, and two or more between cells. Columns are aligned up to the first
    of long cells, such as the counts of a split's parts, to whose width all that have none would be padded."""
    widest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    long = next((number for number, width in enumerate(widest) if number and width > _NAME), len(widest))
    widths = [width if number < long else 0 for number, width in enumerate(widest)]
    cells = [[f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)] for row in rows]
    return [f" {'  '.join(row)}".rstrip() for row in cells]


def _truncate_text(text: str, most: int) -> str:
    return text.rstrip() if len(text) <= most else text[: most - 2].rstrip() + ".."


def _wrap_lines(text: str, wide: int) -> list[str]:
    """The lines of a text, those that are too long broken at spaces."""
    return [part for text_line in text.splitlines() for part in wrap(text_line, wide, break_on_hyphens=False) or [""]]


def _make_grid(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(
        title=Text(escape_untrusted(title)) if title else None, box=SIMPLE_HEAD, title_justify="left", pad_edge=False
    )
    if os.environ.get("NO_COLOR"):
        grid.header_style = grid.title_style = ""
    for number, (name, least) in enumerate(zip(columns, _compute_minimum_widths(columns, rows), strict=True)):
        numeric = bool(rows) and all(isinstance(row[number], int | float) for row in rows)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        heading, most = Text(escape_untrusted(str(name))), max(len(str(row[number])) for row in [columns, *rows])
        is_whole = number < _count_names(columns) and least == most
        grid.add_column(heading, justify=justify, overflow="fold", no_wrap=is_whole, min_width=least)
    for row in rows:
        grid.add_row(*(Text(_format_cell(cell)) for cell in row))
    return grid


def _count_names(columns: Sequence[str]) -> int:
    """How many of the first columns are names that people type and copy; the last of two is text."""
    return min(2, len(columns) - 1)


def _compute_minimum_widths(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[int]:
    """How narrow each column may get, so that cells are broken at blanks, and words and names only where they are
    long."""
    texts = [[name, *(str(row[number]) for row in rows)] for number, name in enumerate(columns)]
    count = _count_names(columns)
    others = [max(_count_unbroken(word) for text in column for word in [*text.split(), ""]) for column in texts[count:]]
    names = [max(map(len, column)) for column in texts[:count]]
    room, total = count_terminal_columns() - sum(others) - 3 * len(columns) + 1, sum(names)
    if total > room >= _NARROWEST * count:
        names = [min(width, max(room // count, room - (total - width))) for width in names]
    return names + others


def _count_unbroken(word: str) -> int:
    return len(word) if re.fullmatch(r"[\[(]?[-+]?[\d.,]+[%\])]*,?", word) else min(_WORD, len(word))


def exit_with_error(message: str) -> None:
    """End this process at once, from any thread, with a one-line error: nothing else can stop code that hangs."""
    sys.stdout.flush()
    print_error(f"error: {message}")
    sys.stderr.flush()
    os._exit(2)


def is_debugging() -> bool:
    """Whether `FARSHIFT_DEBUG` is set, which shows tracebacks."""
    return read_settings().debug


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
    # z: zero has no sign.
    value, low, high = (f"{100 * number:z.1f}" if percent else f"{number:z.3f}" for number in numbers)
    return f"{value} [{low}, {high}]"


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


P = ParamSpec("P")
T = TypeVar("T")

_PLAIN = dict(zip("─│—–…±×·−’≥", ("-", "|", "-", "-", "..", "+-", "x", ".", "-", "'", ">="), strict=True))
"""Replacements for our own characters in an encoding that lacks them."""


def configure_streams() -> None:
    """Make both streams accept any text: a character that the encoding lacks is replaced by a similar one, such as a
    hyphen for a table's line, or by its escape. Text written to a closed stream is discarded."""
    codecs.register_error("farshift", _escape_characters)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed when the process began (>&-)
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        else:
            stream.reconfigure(errors="farshift")
    # By its methods, as the libraries that draw tables and helps write to it by themselves.
    sys.stdout.write, sys.stdout.flush = _explain_os_errors(sys.stdout.write), _explain_os_errors(sys.stdout.flush)  # type: ignore[method-assign]


def _explain_os_errors(method: Callable[P, T]) -> Callable[P, T]:
    """A method of stdout whose operating system errors, such as a full disk, name standard output."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except BrokenPipeError:
            raise
        except OSError as error:
            discard_output()  # or Python fails again, and differently, when it flushes at exit
            why = (error.strerror or str(error)).lower()
            raise FarshiftError(f"standard output: {why}: free some space, or redirect the output") from error

    return call


def has_all_characters() -> bool:
    """Whether stdout's encoding has every character."""
    return codecs.lookup(sys.stdout.encoding or "ascii").name.startswith("utf-")


def _escape_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(
        _PLAIN.get(character) or character.encode("ascii", "backslashreplace").decode() for character in missing
    ), error.end


def discard_output() -> None:
    """Discard further output to stdout after its reader has exited. Otherwise Python reports a broken pipe at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
