"""Simulate everything that docs/statistics.md says is covered, and write the tables there.

    python tests/simulation/run.py --trials 1000
    python tests/simulation/run.py --trials 4000 --only ranks

Each room's `report(trials)` gives lines of `what`, `setting`, `coverage` (the share of trials that held), `mc_se`, and,
where it is not the 93 to 97 % of an interval, the `goal`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from farshift.core.files import write_atomically

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "statistics.md"
ROOMS = ("intervals", "clustered", "ranks", "field", "aggregate")
INTERVAL = (0.93, 0.97)
_LINE = re.compile(r"\| (.+) \| (.+) \| ([\d.]+) \| ([\d.]+) \| (?:([\d.]+) to )?(at most |at least )?([\d.]+) \|")


@dataclass(frozen=True)
class Line:
    """What was simulated, and the share of trials that held, all in percent. goal: where it should lie."""

    what: str
    setting: str
    held: float
    error: float
    goal: tuple[float, float]

    @property
    def within(self) -> bool:
        """Whether it lies in its goal, but for two Monte Carlo standard errors."""
        return self.goal[0] - 2 * self.error <= self.held <= self.goal[1] + 2 * self.error

    def __str__(self) -> str:
        low, high = self.goal
        goal = f"at least {low:g}" if high == 100 else f"at most {high:g}" if low == 0 else f"{low:g} to {high:g}"
        return f"| {self.what} | {self.setting} | {self.held:.1f} | {self.error:.1f} | {goal} |"


def line(found: dict[str, Any]) -> Line:
    """A line from what a room reports."""
    low, high = found.get("goal", INTERVAL)
    percent = [round(100 * value, 1) for value in (found["coverage"], found["mc_se"], low, high)]
    return Line(found["what"], found["setting"], percent[0], percent[1], (percent[2], percent[3]))


def stored(room: str, page: Path = PAGE) -> list[Line]:
    """The lines of a room's table as the page has them."""
    result = []
    for what, setting, locked, error, low, word, end in _LINE.findall(_block(page.read_text("utf-8"), room)[1]):
        goal = (float(end), 100.0) if word == "at least " else (float(low or 0), float(end))
        result.append(Line(what, setting, float(locked), float(error), goal))
    return result


def _block(text: str, room: str) -> tuple[str, str, str]:
    """A page before, in and after the markers of a room's table."""
    start, end = f"<!-- simulated: {room} -->\n", f"<!-- end of {room} -->"
    before, result, rest = text.partition(start)
    inside, closed, after = rest.partition(end)
    if not result or not closed:
        raise ValueError(f"the page has no markers for {room}")
    return before + start, inside, end + after


def written(text: str, room: str, lines: Sequence[Line], trials: int, day: str) -> str:
    """A page with a room's table in its place."""
    before, _, after = _block(text, room)
    table = [
        f"Simulated on {day}, {trials:,} trials a line. In per cent; ± is the Monte Carlo standard error.",
        "",
        "| quantity | setting | coverage | ± | goal |",
        "|---|---|---|---|---|",
        *map(str, lines),
        "",
    ]
    return before + "\n".join(table) + after


def main() -> int:
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("--trials", type=int, default=1000)
    read.add_argument("--only", choices=ROOMS, action="append")
    requested = read.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    outside = 0
    for room in requested.only or ROOMS:
        start = time.process_time()
        lines = [line(result) for result in import_module(f"simulation.{room}").report(requested.trials)]
        day = datetime.now(UTC).date().isoformat()
        write_atomically(PAGE, written(PAGE.read_text("utf-8"), room, lines, requested.trials, day).encode())
        print(f"{room}: {len(lines)} lines, {time.process_time() - start:.0f} s of one core")
        for item in (item for item in lines if not item.within):
            print(f"  outside its goal: {item}")
            outside += 1
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
