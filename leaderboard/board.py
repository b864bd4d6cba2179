"""A board in a folder: submissions, scores and the ledger behind them.

board.toml   ledger.jsonl   submissions/<sha256>.zip   scores/<entry>.json   site/
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import tomli_w

from ..benchmarks.run import now
from ..benchmarks.score import score_predictions
from ..loaders.cache import locked, write_atomically
from ..splits.canonical import identity_of
from ..splits.errors import FarshiftError
from ..splits.plugins import read_toml
from .ledger import Ledger, Record
from .validate import Entry, check

FORMAT = 1


@dataclass(frozen=True)
class Standing:
    """One entry as it stands on the board: who, when, and its score record."""

    entry: str
    submission: str
    team: str
    time: str
    score: dict[str, Any]


class Board:
    """A board's folder. Every change holds its lock and ends with an append to the ledger."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.ledger = Ledger(self.path / "ledger.jsonl")
        if not (self.path / "board.toml").is_file():
            raise FarshiftError(f"{self.path} is no board: make one with farshift board init {self.path}")
        self.card = read_toml(self.path / "board.toml")
        if self.card.get("format") != FORMAT:
            raise FarshiftError(f"{self.path / 'board.toml'}: format {self.card.get('format')!r} is not {FORMAT}")

    @classmethod
    def init(cls, path: Path | str, name: str) -> Board:
        """Make a new, empty board; refuses a folder that holds something else."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FarshiftError(f"{path} exists and is not empty: choose another folder")
        card = {"format": FORMAT, "name": name, "opened": now()}
        write_atomically(path / "board.toml", tomli_w.dumps(card).encode())
        Ledger(path / "ledger.jsonl").append([("opened", {"name": name})])
        return cls(path)

    @property
    def name(self) -> str:
        return str(self.card["name"])

    def submit(self, file: Path | str) -> tuple[list[str], bool]:
        """Validate, score and enter a submission. Returns its entries, and whether it is new: handing in the same
        file again changes nothing."""
        submission = check(file)
        with locked(self.path / "board.toml"):
            for record in self.ledger.records():
                if record.kind == "submitted" and record.body["submission"] == submission.digest:
                    return [item["entry"] for item in record.body["entries"]], False
            write_atomically(self._zip(submission.digest), Path(file).read_bytes())
            entries: list[dict[str, Any]] = []
            for number, entry in enumerate(submission.entries):
                key = entry_key(submission.digest, number, entry)
                content = _scored(entry)
                write_atomically(self._score(key), content)
                entries.append(
                    {
                        "entry": key,
                        "run": number,
                        "benchmark": entry.benchmark.name,
                        "model": entry.model,
                        "entry_identity": entry.entry_identity,
                        "run_digest": entry.digest,
                        "score": sha256(content).hexdigest(),
                    }
                )
            body = {
                "submission": submission.digest,
                "team": submission.team,
                "note": submission.note,
                "entries": entries,
            }
            self.ledger.append([("submitted", body)])
        return [item["entry"] for item in entries], True

    def standings(self) -> list[Standing]:
        """Every entry, in the ledger's order."""
        found = []
        for record in self.ledger.records():
            if record.kind == "submitted":
                for item in record.body["entries"]:
                    score = json.loads(self._score(item["entry"]).read_bytes())
                    found.append(
                        Standing(item["entry"], record.body["submission"], record.body["team"], record.time, score)
                    )
        return found

    def verify(self) -> tuple[int, list[str]]:
        """Recompute everything: the chain, each submission's digest, each score from its predictions, byte for byte.
        Returns the number of entries and every difference found."""
        records, problems = self.ledger.read()
        known: set[str] = set()
        for record in records:
            if record.kind == "submitted":
                try:
                    known |= {item["entry"] for item in record.body["entries"]}
                    problems += self._verify_submission(record)
                except (KeyError, TypeError, AttributeError):
                    problems.append(f"ledger line {record.seq + 1} lacks what a submission's record has")
        for path in sorted((self.path / "scores").glob("*.json")):
            if path.stem not in known:
                problems.append(f"scores/{path.name} belongs to no entry of the ledger")
        return len(known), problems

    def _verify_submission(self, record: Record) -> list[str]:
        digest = record.body["submission"]
        path = self._zip(digest)
        if not path.is_file() or sha256(path.read_bytes()).hexdigest() != digest:
            return [f"submissions/{path.name} is missing or was changed"]
        try:
            submission = check(path)
        except FarshiftError as error:
            return [f"submissions/{path.name} no longer validates: {error}"]
        if len(submission.entries) != len(record.body["entries"]):
            return [f"submissions/{path.name} has {len(submission.entries)} runs, the ledger lists others"]
        problems = []
        for item, entry in zip(record.body["entries"], submission.entries, strict=True):
            name = f"entry {item['entry']} ({item['model']} on {item['benchmark']})"
            again = _scored(entry)
            if item["entry"] != entry_key(digest, item["run"], entry):
                problems.append(f"{name}: its key is not that of its predictions")
            if sha256(again).hexdigest() != item["score"]:
                problems.append(f"{name}: the score computed again is not the one in the ledger")
            stored = self._score(item["entry"])
            if not stored.is_file() or stored.read_bytes() != again:
                problems.append(f"{name}: scores/{stored.name} is missing or differs from the score computed again")
        return problems

    def _zip(self, digest: str) -> Path:
        return self.path / "submissions" / f"{digest}.zip"

    def _score(self, entry: str) -> Path:
        return self.path / "scores" / f"{entry}.json"


def at(place: str) -> Board:
    """The board at a place: a folder."""
    if "://" in place:
        raise FarshiftError(f"{place}: boards behind a URL are not known to this version: name a board's folder")
    return Board(place)


def entry_key(submission: str, number: int, entry: Entry) -> str:
    """The name of an entry: 16 hexadecimal digits over the submission, the run in it and the entry identity."""
    identity = entry.entry_identity
    return identity_of({"submission": submission, "run": number, "identity": identity})[:16]


def _scored(entry: Entry) -> bytes:
    return score_predictions(entry.benchmark, entry.predictions, entry.model, entry.budget, entry.seeds).json()
