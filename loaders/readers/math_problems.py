"""MATH: a JSON file for each problem, in folders of part and subject (Hendrycks et al. 2021, arXiv 2103.03874)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import whole

if TYPE_CHECKING:
    import pyarrow as pa

_BOXED = re.compile(r"\\(?:boxed|fbox)")


def read(files: dict[str, Any]) -> pa.Table:
    """`problem`, `answer` (what the solution boxes last), `solution`, `subject` (the folder), `level` (1 to 5, 0 where
    none is given) and `cell` (part and level, such as "train/3")."""
    import pyarrow as pa

    held = whole(files)
    rows = []
    for name, content in held.walk(lambda name: name.endswith(".json")):
        *_, part, subject, _ = ["", *name.split("/")]
        try:
            said = json.loads(content)
            level = said["level"].removeprefix("Level ")
            answer = boxed(said["solution"])
            problem = said["problem"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadData(f"{held.where}: {name} is no problem of MATH: {error!r}") from error
        if answer is None:
            raise BadData(f"{held.where}: {name}: its solution boxes no answer")
        number = int(level) if level.isdigit() else 0
        rows.append(
            {
                "problem": problem,
                "answer": answer,
                "solution": said["solution"],
                "subject": subject,
                "level": number,
                "cell": f"{part}/{number}",
            }
        )
    if not rows:
        raise BadData(f"{held.where} has no problems")
    return pa.Table.from_pylist(rows)


def boxed(solution: str) -> str | None:
    """What the last \\boxed of a solution holds: between braces, which may nest, or up to the next dollar sign."""
    found = list(_BOXED.finditer(solution))
    if not found:
        return None
    rest = solution[found[-1].end() :]
    if not rest.startswith("{"):
        return rest.split("$")[0].strip()
    depth = 0
    for place, sign in enumerate(rest):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return rest[1:place]
    return None
