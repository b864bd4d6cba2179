"""Limits on the size of a submission and on the resources for reading it (docs/submitting.md has the same table), and
what the reader's process and its parent exchange besides the files.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20

SUBMISSION_BYTES = 1 << 30
PREDICTIONS_BYTES = 256 * MIB
CARD_BYTES = 4 * MIB
RUNS = 500
RATIO = 200
"""Maximum compression ratio of entries of over a MiB."""

ROW_GROUPS = 10_000
NAME_BYTES = 1000
"""Of a predictions file: maximum number of row groups, and length of a part's or candidate's name in bytes."""

DECODED_BYTES = 2 << 30
DECODED_TOTAL = 8 << 30
"""Maximum decoded size of one predictions file, and of a whole submission."""

PROBLEMS = 200
PROBLEMS_OF_A_FILE = 50
PROBLEMS_IN_A_LINE = 12
"""Maximum number of problems in the list, of one file, and in an error's one line; the rest are counted."""


WAIT = 12


@dataclass(frozen=True)
class ReaderLimits:
    """Limits of the process that decodes: bytes of address space, and seconds of processor time for one file, plus
    those that depend on its size. By the wall clock it may take `WAIT` times as long, as on a busy machine."""

    memory: int = 1 << 30
    seconds: float = 5.0
    bytes_per_second: int = 2 * MIB

    def seconds_for(self, size: int) -> float:
        return self.seconds + size / self.bytes_per_second


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


class FileRejected(Exception):
    """A file that is not read. findings: (problem's name, description, column) of each problem."""

    def __init__(self, findings: list[tuple[str, str, str]]) -> None:
        super().__init__("; ".join(what for _, what, _ in findings))
        self.findings = findings

    @classmethod
    def because(cls, name: str, what: str, column: str = "") -> FileRejected:
        return cls([(name, what, column)])
