"""Word problems as tables with the numbers in a separate column: the format in which SVAMP published MAWPS, ASDiv-A and
its own problems (Patel, Bhattamishra and Goyal 2021, arXiv 2103.07191)."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = re.compile(r"number(\d+)")


def read(files: dict[str, Path], *, origin: dict[str, str]) -> pa.Table:
    """Fields: `question`, with its numbers in place of "number0", "number1" ..; `answer`, a number with at most two
    decimals; `operations`, the number of operations in the published equation; and `origin`, as given for the file."""
    import pyarrow as pa

    if set(files) != set(origin):
        raise BadDefinition("word_problems: `origin` and the files of the distribution differ")
    rows = []
    for name, meaning in origin.items():
        for number, record in enumerate(csv.DictReader(read_utf8_lines(name, files[name])), 2):
            try:
                values = [_format_number(value) for value in record["Numbers"].split()]
                rows.append(
                    {
                        "question": _MARK.sub(lambda mark: values[int(mark[1])], record["Question"]),  # noqa: B023
                        "answer": f"{float(record['Answer']):.2f}".rstrip("0").rstrip("."),
                        "operations": sum(sign in "+-*/" for sign in record["Equation"].split()),
                        "origin": meaning,
                    }
                )
            except (KeyError, IndexError, ValueError, AttributeError) as error:
                raise BadData(f"{name}: line {number} is not a problem: {type(error).__name__}: {error}") from error
    return pa.Table.from_pylist(rows)


def _format_number(number: str) -> str:
    """Format a number, without ".0" if it is whole."""
    float(number)
    return number.removesuffix(".0")
