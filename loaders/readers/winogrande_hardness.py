"""Winogrande sentences of known hardness: sentence, two options, answer, agreement and rule, tab-separated.

Hardness is the mean confidence of a model in the true answer over its training (data maps: Swayamdipta et al. 2020);
Saha et al. 2022 selected the sentences with most, middle and least confidence.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa

HARDNESS = ("easy", "medium", "hard")


def read(files: dict[str, Path], *, parts: dict[str, str]) -> pa.Table:
    """Fields: `sentence` (with `_` for the missing name), `option1`, `option2`, `answer` (0 or 1: which option),
    `origin`, `hardness` (0 easy, 1 medium, 2 hard), `agreement` and `rule`.

    parts: the published part (`origin`) of each file, beginning with its hardness, such as "hard_pool". `agreement` is
    "disagree" if the person who wrote the `rule` (why the answer is right) thought that the answer is wrong.
    """
    import pyarrow as pa

    rows = []
    for name, path in files.items():
        part = parts.get(name, "")
        hardness = part.partition("_")[0]
        if hardness not in HARDNESS:
            raise BadDefinition(f"winogrande_hardness: the part of {name} must begin with {', '.join(HARDNESS)}")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            cells = line.split("\t")
            if len(cells) != 6 or cells[3] not in cells[1:3]:
                raise BadData(
                    f"{name}: line {number} is not sentence, two options, answer (one of them), agreement, rule"
                )
            rows.append(
                {
                    "sentence": cells[0],
                    "option1": cells[1],
                    "option2": cells[2],
                    "answer": cells[1:3].index(cells[3]),
                    "origin": part,
                    "hardness": HARDNESS.index(hardness),
                    "agreement": cells[4],
                    "rule": cells[5],
                }
            )
    return pa.Table.from_pylist(rows)
