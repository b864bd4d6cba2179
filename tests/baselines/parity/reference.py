"""Numbers that released code made, as they are kept: one JSON file of `numbers/` for each algorithm, or for each of
the forms that it has in several repositories (`irm`, `irm.authors`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "numbers"

Numbers = Mapping[str, Any]
"""Lists of numbers, nested or not, by what they are: `losses`, `parameters` .."""


@dataclass(frozen=True)
class Reference:
    """What one algorithm is held to.

    name: of the algorithm, and after a dot of the form. repository, commit, code: whose code made the numbers, and the file and name in it. driver: the file of `drivers/`
    that called it. problem: the function of `problems/`, `run_` before it, that computes ours. settings: ours. within: the largest difference
    that passes. difference: the largest that was seen when the numbers were made. remark: what was set so that both
    compute the same, and where the released code is followed otherwise.
    """

    name: str
    repository: str
    commit: str
    code: str
    driver: str
    numbers: Numbers
    problem: str = "steps"
    settings: Mapping[str, Any] = field(default_factory=dict)
    within: float = 1e-10
    difference: float = math.nan
    remark: str = ""

    @property
    def algorithm(self) -> str:
        return self.name.split(".")[0]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json"

    def write(self) -> None:
        """Keep it, each list of numbers on a line."""
        shown = asdict(self)
        numbers = shown.pop("numbers")
        lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in shown.items()]
        stored = ",\n".join(f"  {json.dumps(name)}: {_lines(value)}" for name, value in numbers.items())
        self.path.write_text("{\n" + "\n".join(lines) + '\n "numbers": {\n' + stored + "\n }\n}\n")

    def measured(self, ours: Numbers) -> Reference:
        """The same with the difference that is seen now, in two digits."""
        return replace(self, difference=float(f"{largest(ours, self.numbers):.1e}"))


def _lines(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "[\n   " + ",\n   ".join(json.dumps(row) for row in value) + "\n  ]"
    return json.dumps(value)


def read(path: Path) -> Reference:
    """The reference of a file."""
    result = Reference(**json.loads(path.read_text()))
    if result.path.name != path.name:
        raise ValueError(f"{path.name} is of {result.name}")
    return result


def references() -> list[Reference]:
    """All that are kept, by name."""
    return sorted((read(path) for path in FOLDER.glob("*.json")), key=lambda one: one.name)


def largest(ours: Any, theirs: Any) -> float:
    """The largest difference of two nests of numbers; infinite where their shapes or names differ, or one is no
    number."""
    if isinstance(theirs, Mapping):
        if set(ours) != set(theirs):
            return math.inf
        return max(largest(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return math.inf
        return max((largest(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)
    result = abs(ours - theirs)
    return math.inf if math.isnan(result) else float(result)
