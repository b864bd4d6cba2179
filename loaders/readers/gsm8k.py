"""GSM8K: grade-school word problems with worked solutions, and the results of four published systems on the test
part."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa

_ANSWER = re.compile(r"(?P<solution>.*)\n#### (?P<answer>-?[\d,]+)\s*", re.DOTALL)


def read(files: dict[str, Path], *, parts: dict[str, str], solutions: str) -> pa.Table:
    """Fields: `question`, `answer` (the final number, in digits without commas), `solution` (the worked lines),
    `origin`, `steps`, `words`, and `failures`.

    parts: the published part (`origin`) that each file of problems holds. solutions: the file of model solutions.
    `steps` counts the lines of the solution (Hase et al. 2024, arXiv 2401.06751); `words` those of the question;
    `failures` the systems that do not solve the problem, or -1 if none was evaluated on it.
    """
    import pyarrow as pa

    if set(files) != {*parts, solutions}:
        raise BadDefinition(
            f"gsm8k reads {', '.join(sorted({*parts, solutions}))}, but the files are {', '.join(files)}"
        )
    failed = {record["question"]: _count_failures(record) for record in _read_records(solutions, files[solutions])}
    rows = []
    for name, part in parts.items():
        for number, record in enumerate(_read_records(name, files[name]), 1):
            match = _ANSWER.fullmatch(record["answer"])
            if not match:
                raise BadData(f"{name}: line {number}: the solution does not end with '#### ' and a number")
            rows.append(
                {
                    "question": record["question"],
                    "answer": match["answer"].replace(",", ""),
                    "solution": match["solution"],
                    "origin": part,
                    "steps": match["solution"].count("\n") + 1,
                    "words": len(record["question"].split()),
                    "failures": failed.get(record["question"], -1),
                }
            )
    return pa.Table.from_pylist(rows)


def _read_records(name: str, path: Path) -> list[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except ValueError as error:
        raise BadData(f"{name} is not JSON with one record per line: {error}") from error


def _count_failures(record: dict[str, Any]) -> int:
    """Return how many of the systems in a record of model solutions are wrong."""
    return sum(not value["is_correct"] for value in record.values() if isinstance(value, dict))
