"""ASDiv (Miao, Liang and Su 2020, arXiv 2106.15772): arithmetic word problems of six school grades, in XML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER = re.compile(r"(?P<number>-?[\d,]*\.?\d+)(?: *\([^;]*\))?")
_PARTS = ("Body", "Question", "Answer", "Solution-Type")


def read(files: dict[str, Path]) -> pa.Table:
    """Fields: `question` (the body and its question), `answer` (a number in digits, without its unit), `grade` (1 to
    6), `operation` (the published type of its solution) and `number` (of the problem). Problems whose answer is not one
    number are left out."""
    import pyarrow as pa

    if len(files) != 1:
        raise BadDefinition("asdiv reads one file")
    ((name, path),) = files.items()
    try:
        problems = list(ElementTree.parse(path).getroot().iter("Problem"))
    except ElementTree.ParseError as error:
        raise BadData(f"{name} is not well-formed XML: {error}") from error
    rows = []
    for problem in problems:
        parts = {tag: " ".join((problem.findtext(tag) or "").split()) for tag in _PARTS}
        grade = problem.get("Grade", "")
        if not parts["Body"] or not parts["Answer"] or not grade.isdecimal():
            raise BadData(f"{name}: problem {problem.get('ID')} lacks a body, an answer or a grade")
        match = _NUMBER.fullmatch(parts["Answer"])
        if match:
            rows.append(
                {
                    "question": f"{parts['Body']} {parts['Question']}".strip(),
                    "answer": match["number"].replace(",", ""),
                    "grade": int(grade),
                    "operation": parts["Solution-Type"],
                    "number": problem.get("ID", ""),
                }
            )
    return pa.Table.from_pylist(rows)
