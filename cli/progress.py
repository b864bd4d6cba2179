"""The progress of long work on stderr: bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.clock import format_duration
from ..core.progress import report_to
from ..core.text import LINES, escape_untrusted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SHORTEST, _LONGEST, _SHARE = 10.0, 60.0, 0.1
"""Without a terminal, a line for each tenth of the work: none within ten seconds of another, and one each minute."""

_WIDE = 110
"""Width from which a bar has its full length and shows the elapsed time."""


@dataclass
class _Work:
    """Work in progress, reported by plain lines. began, first: the time and progress of its first update; last,
    reported_done: those of the last printed line."""

    began: float
    first: int
    last: float
    reported_done: int
    lines: int = 0


class Lines:
    """Prints progress as plain lines. Work that ends within ten seconds has none."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._work: dict[str, _Work] = {}

    def advance(self, label: str, done: int, total: int | None, note: str) -> None:
        now = self._clock()
        work = self._work.setdefault(label, _Work(now, done, now, done))
        ends = total is not None and done >= total
        if ends:
            del self._work[label]
        since = now - work.last
        enough = total is not None and done - work.reported_done >= _SHARE * total
        if (ends and work.lines) or (not ends and since >= _SHORTEST and (enough or since >= _LONGEST)):
            self._say(_format_progress(label, done, total, note, work, now))
            work.last, work.reported_done, work.lines = now, done, work.lines + 1


def _format_progress(label: str, done: int, total: int | None, note: str, work: _Work, now: float) -> str:
    rate = (done - work.first) / (now - work.began) if now > work.began else 0.0
    parts = [f"{done:,}" if total is None else f"{done:,} of {total:,} ({done / max(1, total):.0%})"]
    if rate:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        parts.append(f"{format_duration((total - done) / rate)} left" if total and total > done else "")
    return f"{label}: " + ", ".join(part for part in [*parts, note] if part)


class Screen:
    """Shows the progress of long work: lines, and progress bars if stderr is a terminal. Any thread may call it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._progress: Progress | None = None
        self._bars: dict[str, TaskID] = {}
        self._lines = Lines(self.say)
        self._lock = Lock()

    def say(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(escape_untrusted(text, LINES)), soft_wrap=True)

    def advance(self, label: str, done: int, total: int | None, note: str = "") -> None:
        label, note = escape_untrusted(label), escape_untrusted(note)
        with self._lock:
            if self._console.is_terminal:
                self._draw(label, done, total, note)
            else:
                self._lines.advance(label, done, total, note)

    def _draw(self, label: str, done: int, total: int | None, note: str) -> None:
        if self._progress is None:
            self._progress = make_progress_bars(self._console)
            self._progress.start()
        if label not in self._bars:  # what was done before is no part of its pace
            self._bars[label] = self._progress.add_task(label, total=total, completed=done, note=note)
        self._progress.update(self._bars[label], completed=done, total=total, note=note)
        if total is not None and done >= total:
            self._progress.remove_task(self._bars.pop(label))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


def make_progress_bars(console: Any) -> Progress:
    """Progress bars that fit the console's columns: in a narrow one names are cut, never numbers."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    def make_column() -> Column:
        return Column(no_wrap=True)

    wide = console.width >= _WIDE
    name = Column(no_wrap=True, overflow="ellipsis", max_width=None if wide else max(16, console.width - 58))
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(40 if wide else 8),
        MofNCompleteColumn(table_column=make_column()),
        *([TimeElapsedColumn(table_column=make_column())] if wide else []),
        TimeRemainingColumn(table_column=make_column()),
        TextColumn("{task.fields[note]}", markup=False, table_column=make_column()),
        console=console,
        transient=True,
    )


@contextmanager
def show_progress() -> Iterator[None]:
    """Show the progress of long work on stderr within the context. stdout is for the result only: anything else that
    is printed meanwhile, by a user's model or a worker process, goes to stderr too."""
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
