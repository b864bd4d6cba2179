"""The requests to the reader and its rejections: everything that the two processes exchange besides the files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

COLUMNS = {"part": "string", "row_id": "uint64", "seed": "int32", "candidate": "string", "status": "int8"}
"""The columns of every predictions file except `prediction`, whose type is the task's, and `scores`."""


@dataclass(frozen=True)
class ExpectedTable:
    """The expected form of a predictions file: the Arrow type of `prediction`, the number of classes (0 if the task has
    no scores), the exact number of rows, and the maximum length of a predicted string in bytes."""

    prediction: str
    classes: int
    rows: int
    text_bytes: int

    @property
    def columns(self) -> dict[str, str]:
        """Each column's Arrow type by name, except for `scores`."""
        return COLUMNS | {"prediction": self.prediction}

    def record(self) -> dict[str, Any]:
        """The request as JSON."""
        return asdict(self)


class FileRejected(Exception):
    """A file that is not read. findings: (problem's name, description, column) of each problem."""

    def __init__(self, findings: list[tuple[str, str, str]]) -> None:
        super().__init__("; ".join(what for _, what, _ in findings))
        self.findings = findings

    @classmethod
    def because(cls, name: str, what: str, column: str = "") -> FileRejected:
        return cls([(name, what, column)])
