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
        for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines()):
            problem = _problem(line, number, previous)
            if problem:
                return found, [f"line {number + 1} {problem}"]
            record = Record(**json.loads(line))
            previous = record.hash
            found.append(record)
        return found, []

    def append(self, events: list[tuple[str, dict[str, Any]]]) -> list[Record]:
        """Append events, in one write, flushed to the disk."""
        known = self.records() if self.path.exists() else []
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
        if whole < len(content):
            with self.path.open("r+b") as file:
                file.truncate(whole)


def _problem(line: bytes, number: int, previous: str) -> str:
    try:
        record = json.loads(line)
        rest = {key: record[key] for key in ("seq", "time", "kind", "body", "previous")}
        if canonical_json(rest | {"hash": record["hash"]}) != line:
            return "is not written as the ledger writes it"
    except (ValueError, KeyError, TypeError):
        return "is not a record"
    if record["seq"] != number:
        return f"has number {record['seq']}: a record was removed or added"
    if record["previous"] != previous:
        return "does not follow from the one before it"
    if record["hash"] != identity_of(rest):
        return "was changed: its hash does not fit"
    return ""
