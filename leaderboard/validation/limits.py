"""Limits on the size of a submission and on the resources for reading it. docs/submitting.md has the same table."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20

SUBMISSION_BYTES = 1 << 30
PREDICTIONS_BYTES = 256 * MIB
CARD_BYTES = 4 * MIB
RUNS = 500
RATIO = 200
"""Maximum compression ratio of entries of over a MiB."""

TOML_DEPTH = 12
TOML_VALUES = 200_000
TOML_TEXT = 100_000
"""Of a card: maximum nesting depth, number of values, and length of a string."""

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


@dataclass(frozen=True)
class ReaderLimits:
    """Limits of the process that decodes: bytes of address space, and seconds for one file (wall clock and processor),
    plus the seconds that depend on its size."""

    memory: int = 1 << 30
    seconds: float = 5.0
    bytes_per_second: int = 2 * MIB
    all_seconds: float = 9.0
    seconds_per_file: float = 0.25
    """For all files together, plus the seconds that depend on their number and size."""

    def seconds_for(self, size: int) -> float:
        return self.seconds + size / self.bytes_per_second

    def all_seconds_for(self, files: int, size: int) -> float:
        return self.all_seconds + self.seconds_per_file * files + size / self.bytes_per_second
