"""The ledger: an append-only, hash-chained record of all that happened on a board.

One canonical-JSON line a record: `seq`, `time`, `kind`, `body`, `previous` (the hash before it) and `hash` (sha256 of
the canonical JSON of the rest). Records that belong together are appended in one write and flushed to the disk before
anything is acknowledged; a last line that a crash cut off was never acknowledged, and is dropped by the next append.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..benchmarks.run import now
from ..loaders.cache import plain_disk_errors
from ..splits.canonical import canonical_json, identity_of
from ..splits.errors import FarshiftError

GENESIS = "0" * 64


@dataclass(frozen=True)
class Record:
    """One line of the ledger."""

    seq: int
    time: str
    kind: str
    body: dict[str, Any]
    previous: str
    hash: str


class Ledger:
    """The ledger in a file. Callers hold the board's lock while they append."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def records(self) -> list[Record]:
        """All records, the chain checked; `FarshiftError` names the first line that breaks it."""
        found, problems = self.read()
        if problems:
            raise FarshiftError(f"{self.path}: {problems[0]}")
        return found

    def read(self) -> tuple[list[Record], list[str]]:
        """The records up to the first broken one, and what is wrong with the ledger."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return [], [f"{self.path.name} is missing"]
        found: list[Record] = []
        previous = GENESIS
        for number, line in enumerate(self._lines(content)):
            problem = _problem(line, number, previous)
            if problem:
                return found, [f"line {number + 1} {problem}"]
            record = Record(**json.loads(line))
            previous = record.hash
            found.append(record)
        if not found or found[0].kind != "opened":
            return found, [f"{self.path.name} does not begin with the board's opening: records were removed"]
        return found, []

    def _lines(self, content: bytes) -> list[bytes]:
        """The whole lines; the last one also without its newline, if it is a whole record all the same."""
        whole = content.rfind(b"\n") + 1
        lines, rest = content[:whole].splitlines(), content[whole:]
        return [*lines, rest] if rest and not _unreadable(rest) else lines

    def append(self, events: list[tuple[str, dict[str, Any]]]) -> list[Record]:
        """Append events, in one write, flushed to the disk."""
        known = self.records() if self.path.exists() and self.path.stat().st_size else []
        previous, time = (known[-1].hash if known else GENESIS), now()
        added: list[Record] = []
        for kind, body in events:
            rest: dict[str, Any] = {
                "seq": len(known) + len(added),
                "time": time,
                "kind": kind,
                "body": body,
                "previous": previous,
            }
            previous = identity_of(rest)
            added.append(Record(**rest, hash=previous))
        lines = b"".join(canonical_json(record.__dict__) + b"\n" for record in added)
        with plain_disk_errors(self.path):
            self._drop_cut_off_line()
            with self.path.open("ab") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        return added

    def _drop_cut_off_line(self) -> None:
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole == len(content):
            return
        with self.path.open("r+b") as file:
            if _unreadable(content[whole:]):
                file.truncate(whole)
            else:  # a whole record that lost only its newline
                file.seek(0, os.SEEK_END)
                file.write(b"\n")


def _unreadable(line: bytes) -> bool:
    """Whether a line is no whole record, such as one that a crash cut off."""
    try:
        record = json.loads(line)
        return canonical_json({key: record[key] for key in Record.__dataclass_fields__}) != line
    except (ValueError, KeyError, TypeError):
        return True


def _problem(line: bytes, number: int, previous: str) -> str:
    if _unreadable(line):
        return "is not a record as the ledger writes it"
    record = json.loads(line)
    rest = {key: value for key, value in record.items() if key != "hash"}
    if record["seq"] != number:
        return f"has number {record['seq']}: a record was removed or added"
    if record["previous"] != previous:
        return "does not follow from the one before it"
    if record["hash"] != identity_of(rest):
        return "was changed: its hash does not fit"
    return ""
