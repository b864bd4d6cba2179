"""MATH (Hendrycks et al. 2021, arXiv 2103.03874): competition problems whose solution boxes its answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa

_BOX = re.compile(r"\\(?:boxed|fbox)\s*")


def read(files: dict[str, Path]) -> pa.Table:
    """Fields, from lines of JSON: `problem`, `answer` (the content of the last box of the solution, with single
    spaces), `subject`, `level` (1 to 5, or 0 if none is given) and `solution`."""
    import pyarrow as pa

    if len(files) != 1:
        raise BadDefinition("boxed_answers reads one file")
    ((name, path),) = files.items()
    rows = []
    for number, line in enumerate(read_utf8_lines(name, path), 1):
        try:
            record = json.loads(line)
            level = re.fullmatch(r"Level (\d|\?)", record["level"])
            answer = extract_boxed(record["solution"])
            if level is None or answer is None:
                raise ValueError("no level, or no box")
            rows.append(
                {
                    "problem": record["problem"],
                    "answer": answer,
                    "subject": record["type"],
                    "level": int(level[1].replace("?", "0")),
                    "solution": record["solution"],
                }
            )
        except (ValueError, KeyError, TypeError) as error:
            raise BadData(f"{name}: line {number} is not a problem of MATH: {type(error).__name__}: {error}") from error
    return pa.Table.from_pylist(rows)


def extract_boxed(solution: str) -> str | None:
    """Return the content of the last box of a solution: up to the closing brace or, without braces, the next word."""
    last = None
    for last in _BOX.finditer(solution):  # noqa: B007
        pass
    if last is None:
        return None
    rest = solution[last.end() :]
    if not rest.startswith("{"):
        return " ".join(rest.split("$")[0].split())
    depth = 0
    for index, sign in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth == 0:
            return " ".join(rest[1:index].split())
    return None
