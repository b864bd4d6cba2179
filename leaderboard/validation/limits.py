"""How much of anything a submission may hold, and what reading it may cost. docs/submitting.md has the same table."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20

SUBMISSION_BYTES = 1 << 30
PREDICTIONS_BYTES = 256 * MIB
CARD_BYTES = 4 * MIB
RUNS = 500
RATIO = 200
"""Bytes that a byte of the zip may unpack to, for entries of over a MiB."""

TOML_DEPTH = 12
TOML_VALUES = 200_000
TOML_TEXT = 100_000
"""Of a card: tables and lists inside each other, values in all, and characters of a text."""

ROW_GROUPS = 10_000
NAME_BYTES = 1000
"""Of a predictions file: its row groups, and the bytes of a part's or candidate's name."""

DECODED_BYTES = 2 << 30
DECODED_TOTAL = 8 << 30
"""What one predictions file, and all of a submission, may decode to."""

PROBLEMS = 200
PROBLEMS_OF_A_FILE = 50
PROBLEMS_IN_A_LINE = 12
"""Problems that are listed, and that an error's one line tells; the rest are counted."""


@dataclass(frozen=True)
class ReaderLimits:
    """What the process that decodes may use: bytes of address space, and seconds for one file, of wall clock and of
    processor, to which come those that its size needs."""

    memory: int = 1 << 30
    seconds: float = 5.0
    bytes_per_second: int = 2 * MIB
    all_seconds: float = 9.0
    seconds_per_file: float = 0.25
    """For all files together, to which come those that their number and size need."""

    def seconds_for(self, size: int) -> float:
        return self.seconds + size / self.bytes_per_second

    def all_seconds_for(self, files: int, size: int) -> float:
        return self.all_seconds + self.seconds_per_file * files + size / self.bytes_per_second
