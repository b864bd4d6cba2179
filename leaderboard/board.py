"""A board in a folder: submissions, scores and the ledger behind them.

board.toml   ledger.jsonl   submissions/<sha256>.zip   scores/<entry>.json   site/
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import tomli_w

from ..benchmarks.benchmark import find_benchmark
from ..benchmarks.run import now
from ..benchmarks.score import score_predictions
from ..loaders.cache import lock_elsewhere, locked, write_atomically
from ..splits.canonical import identity_of
from ..splits.errors import FarshiftError, Unavailable
from ..splits.plugins import read_toml
from .ledger import Ledger, Record
from .validate import Entry, check

FORMAT = 1
_ADVICE = "put the board on another disk"


@dataclass(frozen=True)
class Standing:
    """One entry as it stands on the board: who, when, and its score record."""

    entry: str
    submission: str
    team: str
    note: str
    time: str
    score: dict[str, Any]


@dataclass(frozen=True)
class Verification:
    """What a recomputation found: entries, every difference, and what could not be recomputed here, with why."""

    entries: int
    differences: list[str]
    not_recomputed: list[str]


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
        with locked(lock_elsewhere(path), str(path)):
            begun = {"ledger.jsonl"}  # what a killed `init` may have left: the ledger is written first
            if path.exists() and (not path.is_dir() or {item.name for item in path.iterdir()} - begun):
                raise FarshiftError(f"{path} exists and is not empty: choose another folder")
            (path / "ledger.jsonl").unlink(missing_ok=True)
            write_atomically(path / "ledger.jsonl", b"", _ADVICE)
            Ledger(path / "ledger.jsonl").append([("opened", {"name": name})])
            card = {"format": FORMAT, "name": name, "opened": now()}
            write_atomically(path / "board.toml", tomli_w.dumps(card).encode(), _ADVICE)
        return cls(path)

    @property
    def name(self) -> str:
        return str(self.card["name"])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the board; first finish or clear away what a killed submit left in `incoming/`."""
        with locked(lock_elsewhere(self.path), str(self.path)):
            incoming = self.path / "incoming"
            if incoming.is_dir():
                known = {record.body.get("submission") for record in self.ledger.read()[0]}
                for staged in sorted(incoming.iterdir()):
                    if staged.name in known:
                        self._publish(staged)
                    else:
                        shutil.rmtree(staged)
            yield

    def submit(self, file: Path | str) -> tuple[list[str], bool]:
        """Validate, score and enter a submission. Returns its entries, and whether it is new: handing in the same
        file again changes nothing. Nothing is entered unless every run of it was scored."""
        submission = check(file)
        with self._locked():
            taken: dict[str, str] = {}
            for record in self.ledger.records():
                if record.kind != "submitted":
                    continue
                if record.body["submission"] == submission.digest:
                    return [item["entry"] for item in record.body["entries"]], False
                taken |= {item["run_digest"]: item["entry"] for item in record.body["entries"]}
            for entry in submission.entries:
                if entry.digest in taken:
                    raise FarshiftError(
                        f"{file}: {entry.model} on {entry.benchmark.name} is the run behind entry "
                        f"{taken[entry.digest]} on this board already: pack the others without it"
                    )
            staged = self.path / "incoming" / submission.digest
            entries: list[dict[str, Any]] = []
            for number, entry in enumerate(submission.entries):
                content = _scored(entry)
                entries.append(_listed(submission.digest, number, entry, content))
                write_atomically(staged / f"{entries[-1]['entry']}.json", content, _ADVICE)
            write_atomically(staged / "submission.zip", Path(file).read_bytes(), _ADVICE)
            body = {
                "submission": submission.digest,
                "team": submission.team,
                "note": submission.note,
                "entries": entries,
            }
            self.ledger.append([("submitted", body)])
            self._publish(staged)
        return [item["entry"] for item in entries], True

    def _publish(self, staged: Path) -> None:
        """Move a submission that the ledger has into its place."""
        for path in sorted(staged.glob("*.json")):
            self._score(path.stem).parent.mkdir(exist_ok=True)
            path.replace(self._score(path.stem))
        if (staged / "submission.zip").exists():
            self._zip(staged.name).parent.mkdir(exist_ok=True)
            (staged / "submission.zip").replace(self._zip(staged.name))
        shutil.rmtree(staged)

    def standings(self) -> list[Standing]:
        """Every entry, in the ledger's order; its score held to the digest in the ledger."""
        found = []
        with self._locked():
            for record in self.ledger.records():
                if record.kind == "submitted":
                    for item in record.body["entries"]:
                        score = json.loads(self._stored(item))
                        found.append(
                            Standing(
                                item["entry"],
                                record.body["submission"],
                                record.body["team"],
                                record.body["note"],
                                record.time,
                                score,
                            )
                        )
        return found

    def _stored(self, item: dict[str, Any]) -> bytes:
        path = self._score(item["entry"])
        content = path.read_bytes() if path.is_file() else b""
        if sha256(content).hexdigest() != item["score"]:
            raise FarshiftError(
                f"{path} is missing or was changed: farshift board verify {self.path} lists what differs"
            )
        return content

    def verify(self) -> Verification:
        """Recompute everything: the chain, each submission's digest, each score from its predictions, byte for byte."""
        with self._locked():
            records, problems = self.ledger.read()
            result = Verification(0, problems, [])
            scores, zips = set(), set()
            for record in records:
                if record.kind == "submitted":
                    try:
                        scores |= {item["entry"] for item in record.body["entries"]}
                        zips.add(record.body["submission"])
                        self._verify_submission(record, result)
                    except (KeyError, TypeError, AttributeError):
                        result.differences.append(f"ledger line {record.seq + 1} lacks what a submission's record has")
            for folder, known in (("scores", scores), ("submissions", zips)):
                for path in sorted((self.path / folder).glob("*.*")):
                    if path.stem not in known:
                        result.differences.append(f"{folder}/{path.name} belongs to no record of the ledger")
            return Verification(len(scores), result.differences, result.not_recomputed)

    def _verify_submission(self, record: Record, result: Verification) -> None:
        digest, items = record.body["submission"], record.body["entries"]
        path = self._zip(digest)
        if not path.is_file() or sha256(path.read_bytes()).hexdigest() != digest:
            result.differences.append(f"submissions/{path.name} is missing or was changed")
            return
        old = {item["run"] for item in items if not _is_current(item)}
        for item in items:
            stored = self._score(item["entry"])
            if not stored.is_file() or sha256(stored.read_bytes()).hexdigest() != item["score"]:
                result.differences.append(f"{_named(item)}: scores/{stored.name} is missing or is not the ledger's")
            if item["run"] in old:
                result.not_recomputed.append(f"{_named(item)}: {_why_not(item)}")
        try:
            submission = check(path, {item["run"] for item in items} - old)
        except Unavailable as error:
            result.not_recomputed.append(f"submissions/{path.name}: {error}")
            return
        except FarshiftError as error:
            result.differences.append(f"submissions/{path.name} no longer validates: {error}")
            return
        for item, entry in zip((item for item in items if item["run"] not in old), submission.entries, strict=False):
            again = _listed(digest, item["run"], entry, _scored(entry))
            if again != item:
                wrong = sorted(key for key in {*again, *item} if again.get(key) != item.get(key))
                result.differences.append(f"{_named(item)}: computed again, {', '.join(wrong)} differs from the ledger")

    def _zip(self, digest: str) -> Path:
        return self.path / "submissions" / f"{digest}.zip"

    def _score(self, entry: str) -> Path:
        return self.path / "scores" / f"{entry}.json"


def _named(item: dict[str, Any]) -> str:
    return f"entry {item['entry']} ({item['model']} on {item['benchmark']})"


def _why_not(item: dict[str, Any]) -> str:
    try:
        find_benchmark(item["benchmark"])
    except FarshiftError as error:
        return f"{error} (if it is your own, set FARSHIFT_PATH to the folder that defines it)"
    return "of an older identity, which this version does not score"


def _is_current(item: dict[str, Any]) -> bool:
    """Whether this version of Farshift scores the identity that an entry of the ledger has."""
    try:
        benchmark = find_benchmark(item["benchmark"])
        return bool(benchmark.identity(item["budget"], item["steps"], item["selection"]) == item["entry_identity"])
    except (FarshiftError, KeyError):  # an entry of an older version lacks what identities are made of today
        return False


def at(place: str) -> Board:
    """The board at a place: a folder."""
    if "://" in place:
        raise FarshiftError(f"{place}: boards behind a URL are not known to this version: name a board's folder")
    return Board(place)


def _listed(submission: str, number: int, entry: Entry, score: bytes) -> dict[str, Any]:
    """What the ledger says of one run of a submission. An entry's name is 16 hexadecimal digits over the submission,
    the run in it and the entry identity."""
    name = identity_of({"submission": submission, "run": number, "identity": entry.entry_identity})[:16]
    return {
        "entry": name,
        "run": number,
        "benchmark": entry.benchmark.name,
        "model": entry.model,
        "budget": entry.budget,
        "steps": entry.steps,
        "selection": entry.selection,
        "entry_identity": entry.entry_identity,
        "run_digest": entry.digest,
        "score": sha256(score).hexdigest(),
    }


def _scored(entry: Entry) -> bytes:
    return score_predictions(entry.benchmark, entry.predictions, entry).json()
