"""Problems of a submission: each has a name, a location and a remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ...core.errors import BadSubmission
from .limits import PROBLEMS, PROBLEMS_IN_A_LINE, PROBLEMS_OF_A_FILE, FileRejected

_PACK = "pack the runs again with farshift pack"
_CARD = "fix the card and pack again; farshift pack --template prints one"
_AGAIN = "evaluate again, and pack the unmodified run"
_EACH = "predict every row once, for every seed and candidate"
_SMALLER = "pack fewer runs into one file"

REMEDIES = {
    "file-missing": "give a file that farshift pack wrote",
    "file-too-large": _SMALLER,
    "file-changed": "submit it again when no process writes to it",
    "zip-unreadable": _PACK,
    "zip-unexpected": "remove it, or pack the runs again with farshift pack",
    "zip-too-many": _SMALLER,
    "zip-too-large": _SMALLER,
    "zip-damaged": _PACK,
    "entry-missing": _PACK,
    "toml-invalid": _PACK,
    "format-unknown": _PACK,
    "card-value": _CARD,
    "signature-wrong": "pack the runs again with your team's key (farshift team)",
    "team-other": "pack it for the team of your token, with its key, or submit it with that team's token",
    "run-not-listed": _PACK,
    "run-repeated": "pack one of them, or evaluate one again with another --name",
    "run-edited": _AGAIN,
    "run-value": _AGAIN,
    "run-limited": "evaluate without --limit",
    "benchmark-unlisted": "pack the runs on other benchmarks without it, or ask the board's operator",
    "benchmark-unknown": "if it is your own, set FARSHIFT_PATH to the folder of its definition, also on the board",
    "selection-unknown": "evaluate with a rule that the protocol allows",
    "identity-other": "run it again with this version; answers to a sealed test go to farshift board sealed submit",
    "digest-differs": _PACK,
    "parquet-unreadable": _AGAIN,
    "parquet-column": "write the columns of docs/formats.md, each once",
    "parquet-type": "write the column with this type",
    "parquet-rows": _EACH,
    "parquet-claims": "write the file again as plain Parquet",
    "parquet-too-large": "write only the rows and columns that the benchmark needs",
    "reader-memory": "write it in smaller row groups",
    "reader-time": "write it as plain Parquet or TOML",
    "reader-crash": "write the file again with a current pyarrow",
    "rows-missing": _EACH,
    "rows-unknown": _EACH,
    "rows-repeated": _EACH,
    "rows-of-nothing": "keep only parts, seeds and candidates that run.toml lists",
    "value-missing": "write a value for each row",
    "value-status": "write 0 answered, 1 abstained or 2 failed, with a prediction only for 0",
    "value-class": "predict one of the benchmark's classes",
    "value-boxes": 'write each box as "x0 y0 x1 y1 score class", with ";" between boxes',
    "value-text": "shorten the predictions",
    "value-number": "give a finite number, or the status failed",
    "value-scores": "give probabilities for every row, or leave the column out",
}
"""Every problem's name, and its remedy."""


@dataclass(frozen=True)
class Problem:
    """One reason why a submission cannot be scored.

    `file` is an entry of the zip (or the zip, or a card's path); `column` a column of the predictions or a key of a
    card; `row` the id of the first affected row, as 16 hexadecimal digits. Empty if it does not apply.
    """

    name: str
    file: str
    what: str
    remedy: str
    column: str = ""
    row: str = ""

    def __str__(self) -> str:
        kind = "column" if self.file.endswith(".parquet") else "key"
        places = ((kind, self.column), ("row", self.row))
        where = ", ".join([self.file, *(f"{what} {value}" for what, value in places if value)])
        return f"{where}: {self.what} ({self.remedy})"


class Problems:
    """The problems found so far: the first of them in full, the others only counted."""

    def __init__(self) -> None:
        self.items: list[Problem] = []
        self.left_out = 0
        self._of_file: Counter[str] = Counter()

    def add(self, name: str, file: str, what: str, column: str = "", row: str = "") -> None:
        """Add a problem. Untrusted text is escaped and shortened."""
        self._of_file[file] += 1
        if len(self.items) >= PROBLEMS or self._of_file[file] > PROBLEMS_OF_A_FILE:
            self.left_out += 1
        else:
            shown = format_untrusted(file), format_untrusted(what, 400), REMEDIES[name], format_untrusted(column)
            self.items.append(Problem(name, *shown, row))

    def add_rejection(self, file: str, rejected: FileRejected) -> None:
        """Add the problems of a file that was not read."""
        for name, what, column in rejected.findings:
            self.add(name, file, what, column)

    def __len__(self) -> int:
        return len(self.items) + self.left_out

    def refuse_if_any(self, whose: str) -> None:
        """Raise `BadSubmission` with every problem, if there are any."""
        if self.items:
            raise make_refusal(whose, self.items, self.left_out)


def make_refusal(whose: str, problems: Iterable[Problem], left_out: int = 0) -> BadSubmission:
    """An error with the problems of a submission: as many in its one line as fit, all of them in `problems`."""
    every_problem = tuple(problems)
    count = len(every_problem) + left_out
    # The heading names the file itself.
    texts = [str(problem).removeprefix(f"{whose}: ") for problem in every_problem[:PROBLEMS_IN_A_LINE]]
    more = f"; and {count - len(texts)} more" if count > len(texts) else ""
    error = BadSubmission(f"{whose}: {f'{count} problems: ' if count > 1 else ''}{'; '.join(texts)}{more}")
    error.problems = every_problem
    return error


def to_problem_records(error: BadSubmission) -> list[dict[str, str]]:
    """The problems of a rejection as JSON."""
    return [asdict(problem) for problem in error.problems]


def format_untrusted(text: Any, most: int = 120) -> str:
    """Escape untrusted text for a message: printable, on one line, limited in length."""
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(text)[: most + 1])
    return line if len(line) <= most else f"{line[:most]}.."
