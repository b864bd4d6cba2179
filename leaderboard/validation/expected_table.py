"""What the reader is asked for, and how it says no: all that passes between the two processes besides the bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

COLUMNS = {"part": "string", "row_id": "uint64", "seed": "int32", "candidate": "string", "status": "int8"}
"""The columns of every predictions file but `prediction`, whose type is the task's, and `scores`."""


@dataclass(frozen=True)
class ExpectedTable:
    """The table that a predictions file must be: the Arrow type of `prediction`, classes (0 where there can be no
    scores), exactly how many rows, and the most bytes that a predicted text may have."""

    prediction: str
    classes: int
    rows: int
    text_bytes: int

    @property
    def columns(self) -> dict[str, str]:
        """Each column's Arrow type by name, but for `scores`."""
        return COLUMNS | {"prediction": self.prediction}

    def record(self) -> dict[str, Any]:
        """The request as JSON."""
        return asdict(self)


class FileRejected(Exception):
    """A file that is not read: what is wrong with it, as (problem's name, what, column) each."""

    def __init__(self, findings: list[tuple[str, str, str]]) -> None:
        super().__init__("; ".join(what for _, what, _ in findings))
        self.findings = findings

    @classmethod
    def because(cls, name: str, what: str, column: str = "") -> FileRejected:
        return cls([(name, what, column)])
