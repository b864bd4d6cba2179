"""Text and tables on stdout; errors and progress on stderr."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

import typer

from ..core.settings import read_settings
from ..core.text import LINES, escape_untrusted, escape_untrusted_json


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


_GAP = "   "
_NARROWEST = 30
"""Columns that the last column of a table needs at least, where its cells are broken into lines."""
_NAME = 34
"""Columns that a name is given in a narrow list; longer ones push the title aside."""
_LONG = 50
"""The widest cells to which a column is aligned where there is no screen."""
_UNBROKEN = "\N{NO-BREAK SPACE}"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> None:
    """Print a table on stdout, numbers right-aligned. Where the screen is too narrow, the cells of the last column are
    broken into lines; where that is not enough, each row is a line, or a paragraph under its names. Bold type only in a
    terminal, and never where `NO_COLOR` is set."""
    bold = "\x1b[1m{}\x1b[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else "{}"
    numeric = [bool(rows) and all(isinstance(row[k], int | float) for row in rows) for k in range(len(columns))]
    cells = [[f"{cell:,}" if isinstance(cell, int) else escape_untrusted(str(cell)) for cell in row] for row in rows]
    heads = [escape_untrusted(str(name)) for name in columns]
    if title:
        print(bold.format(escape_untrusted(title)))
    if lines := _align_cells([heads, *cells], numeric):
        rule = f" {'─' * (max(map(len, lines)) - 1)}"
        print("\n".join(["", bold.format(lines[0]), rule, *lines[1:]]))
    else:
        print("\n".join(_stack_rows([heads, *cells], numeric, bold)))
    if caption:
        print("\n".join(_wrap_lines(escape_untrusted(caption, LINES), count_terminal_columns())))


def _align_cells(rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> list[str]:
    """The lines of rows with a blank before them, the first one's on top; none where the screen is too narrow. Without
    a screen each row is one line, and columns are aligned up to the first of long cells, such as the counts of a
    split's parts, to whose width all that have none would be padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if has_screen_width():
        room = count_terminal_columns() - 1 - sum(len(_GAP) + width for width in widths[:-1])
        if room < min(_NARROWEST, widths[-1]):
            return []
        widths[-1] = min(room, widths[-1])
    else:
        long = next((k for k, width in enumerate(widths) if k and width > _LONG), len(widths))
        widths = [width if k < long else 0 for k, width in enumerate(widths)]
    lines = []
    for row in rows:
        last = _wrap_lines(row[-1], widths[-1]) if has_screen_width() else [row[-1]]
        for number, piece in enumerate(last):
            lines.append(_join_cells([*(row[:-1] if number == 0 else [""] * (len(row) - 1)), piece], numeric, widths))
    return lines


def _join_cells(row: Sequence[str], numeric: Sequence[bool], widths: Sequence[int]) -> str:
    sized = zip(row, numeric, widths, strict=True)
    return f" {_GAP.join(cell.rjust(width) if right else cell.ljust(width) for cell, right, width in sized)}".rstrip()


def _stack_rows(rows: Sequence[Sequence[str]], numeric: Sequence[bool], bold: str) -> Iterator[str]:
    """Each row as a line, the headings on top; or, where its names are too long, as a line of its names, with its other
    cells and their headings below."""
    wide, names, columns = count_terminal_columns(), min(2, len(rows[0]) - 1), rows[0]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room, total = wide - 1 - len(_GAP) * (len(widths) - 1) - sum(widths[names:]), sum(widths[:names])
    widths[:names] = [min(width, max(room // names, room - (total - width))) for width in widths[:names]]
    for row in rows:
        if all(len(cell) <= width for cell, width in zip(row, widths, strict=True)):
            line = _join_cells(row, numeric, widths)
            yield bold.format(line) if row is columns else line
        elif row is not columns:
            yield from map(bold.format, _wrap_lines("  ".join(row[:names]), wide, "    "))
            pairs = [f"{column} {cell}" for column, cell in zip(columns[names:], row[names:], strict=True) if cell]
            yield from (f"    {part}" for part in _wrap_lines("; ".join(pairs), wide - 4))


def print_catalogue(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    words: Sequence[str] = (),
    find: Callable[[str], Sized] | None = None,
) -> None:
    """Print many named things. The first cell of a row is its name, the second its kind, the last its title. Where
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
        lines = _align_cells([columns, *rows], [False] * len(columns))
        return print("\n".join([*lines, *escape_untrusted(caption, LINES).splitlines()]))
    for kind in sorted({row[1] for row in rows}):
        print(f"{kind}:")
        for row in rows:
            if row[1] == kind:
                line, most = f"  {row[0]:{_NAME}}  {row[-1]}", max(wide, len(row[0]) + 2)
                print(line.rstrip() if len(line) <= most else line[: most - 2].rstrip() + "..")
    if caption:
        print("\n".join(_wrap_lines(escape_untrusted(caption, LINES), wide)))


def _wrap_lines(text: str, wide: int, indent: str = "") -> list[str]:
    """The lines of a text, those that are too long broken at spaces, but not within an interval. indent: before what
    follows a break."""
    text = re.sub(r"(\[[-+\d.,]+), ", rf"\1,{_UNBROKEN}", text)
    lines = [
        part
        for text_line in text.splitlines() or [""]
        for part in wrap(text_line, wide, subsequent_indent=indent, break_on_hyphens=False) or [""]
    ]
    return [line.replace(_UNBROKEN, " ") for line in lines]


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
    """Discard further output to stdout, whose reader has exited or whose disk is full: Python would fail again at
    exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
