"""MATH: a JSON file for each problem, in folders of part and subject (Hendrycks et al. 2021, arXiv 2103.03874)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import get_archive

if TYPE_CHECKING:
    import pyarrow as pa

_BOXED = re.compile(r"\\(?:boxed|fbox)")


def read(files: dict[str, Any]) -> pa.Table:
    """Fields: `problem`, `answer` (the last boxed answer of the solution), `solution`, `subject` (the folder), `level`
    (1 to 5, or 0 if none is given) and `cell` (part and level, such as "train/3")."""
    import pyarrow as pa

    archive = get_archive(files)
    rows = []
    for name, content in archive.walk(lambda name: name.endswith(".json")):
        *_, part, subject, _ = ["", *name.split("/")]
        try:
            record = json.loads(content)
            level = record["level"].removeprefix("Level ")
            answer = extract_boxed(record["solution"])
            problem = record["problem"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadData(f"{archive.where}: {name} is not a problem of MATH: {error!r}") from error
        if answer is None:
            raise BadData(f"{archive.where}: {name}: its solution has no boxed answer")
        number = int(level) if level.isdigit() else 0
        rows.append(
            {
                "problem": problem,
                "answer": answer,
                "solution": record["solution"],
                "subject": subject,
                "level": number,
                "cell": f"{part}/{number}",
            }
        )
    if not rows:
        raise BadData(f"{archive.where} has no problems")
    return pa.Table.from_pylist(rows)


def extract_boxed(solution: str) -> str | None:
    """Return the content of the last \\boxed of a solution: in (nested) braces, or up to the next dollar sign."""
    boxes = list(_BOXED.finditer(solution))
    if not boxes:
        return None
    rest = solution[boxes[-1].end() :]
    if not rest.startswith("{"):
        return rest.split("$")[0].strip()
    depth = 0
    for index, sign in enumerate(rest):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return rest[1:index]
    return None
