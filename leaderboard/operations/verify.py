"""Verification: the ledger's chain, and everything that it says of scores computed again from the submissions, by
anybody who has an export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...benchmarks.benchmark import benchmarks
from ...core.errors import BadData, FarshiftError, Unavailable, first_line
from ...core.files import file_sha256, write_atomically
from ..board import Board
from ..board_view import derived_here
from ..entries import Entry, read_entries
from ..ledger import HISTORY, Record
from ..ledger.chain import chain_problems
from ..ledger.heads import remember, unlike_place, unlike_seen
from ..ledger.objects import foreign_objects
from ..ledger.rotation import next_key, rotations
from ..sealed.times import stamp, utc_now
from ..sealed.verify import verify_sealed
from ..storage.board_files import files_in, held_back, named_files, named_problems, place_problem, plain_file
from ..storage.object_store import ObjectStore
from ..storage.readers import BoardReader, GoodFiles
from ..validation.limits import SUBMISSION_BYTES
from .verify_entries import compute, verify_entry
from .verify_shown import verify_card, verify_rows, verify_times


@dataclass
class Verification:
    """What a recomputation found: entries, how many of them are `verified`, every difference, and what could not be
    recomputed here, with why.

    records, head: how many records the ledger has, and the hash of the last: note it, and a later look tells whether
    records were cut off. key: the board's public key. notes: what is no difference and worth knowing; before: how many
    submissions an earlier verification by this version had computed."""

    entries: int = 0
    verified: int = 0
    records: int = 0
    head: str = ""
    key: str = ""
    differences: list[str] = field(default_factory=list)
    not_recomputed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list, compare=False)
    before: int = field(default=0, compare=False)

    @property
    def whole(self) -> bool:
        """Whether everything was recomputed, and is as the board says."""
        return not self.differences and not self.not_recomputed


class FolderReader:
    """A board's own folder."""

    whole = True
    address = ""

    def __init__(self, board: Board) -> None:
        self.place, self.folder, self._board = board.place, board.path, board
        self.card: dict[str, Any] = board.card | {"baselines": board.baselines()}

    def read(self) -> tuple[list[Record], list[str]]:
        # What a killed submit left is finished first; where the chain is broken, that waits.
        with suppress(FarshiftError):
            self._board.settled()
        return self._board.ledger.store.records(), []

    def file(self, path: str) -> Path | None:
        return self._board.file(path)

    def strays(self, folders: set[str]) -> list[str]:
        found = files_in(self.folder, folders)
        return sorted(set(found) - set(named_files(self._board.ledger.store.records())))  # entered meanwhile


class StoreReader(FolderReader):
    """A board whose files lie in an object store: they are fetched from there, whatever copies its folder has."""

    def __init__(self, board: Board, objects: ObjectStore, folder: Path) -> None:
        super().__init__(board)
        self.folder, self._objects = folder, objects

    def file(self, path: str) -> Path | None:
        if not place_problem(path) and not (self.folder / path).is_file():
            content = self._objects.get(path, SUBMISSION_BYTES)
            if content is not None:
                write_atomically(self.folder / path, content)
        return plain_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        found = self._objects.paths(folders)
        return sorted(set(found) - set(named_files(self._board.ledger.store.records())))


def verify(
    board: Board | BoardReader,
    head: str | None = None,
    key: str | None = None,
    *,
    workers: int = 1,
    fresh: bool = False,
) -> Verification:
    """Recompute everything: the chain, each signature, each file's digest, each score from its predictions, each
    window, and the row scores that the board keeps.

    head: the hash of a record, key: the board's public key, known from an earlier look; workers: how many processes
    compute, 0 for as many as there are cores; fresh: without what an earlier verification computed. The history is kept
    (`ledger/heads.py`), and held to the one that was last seen."""
    with _reader(board) as copy:
        return _verified(board, copy, head, key, workers, fresh)


@contextmanager
def _reader(board: Board | BoardReader) -> Iterator[BoardReader]:
    """What reads the files of a board, while the context lasts."""
    if not isinstance(board, Board):
        yield board
    elif board.objects is None:
        yield FolderReader(board)
    else:
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            yield StoreReader(board, board.objects, Path(folder))


def _verified(
    board: Board | BoardReader,
    copy: BoardReader,
    head: str | None,
    key: str | None,
    workers: int,
    fresh: bool,
) -> Verification:
    records, unread = copy.read()
    found = Verification(records=len(records), head=records[-1].hash if records else "", key=str(copy.card.get("key")))
    _verify_history(copy, records, unread, found, head, key)
    found.differences += named_problems(records) + verify_card(copy.card, records) + verify_times(records)
    if isinstance(board, Board):
        found.differences += foreign_objects(board.ledger.store)
    there, wrong = read_entries(records)
    found.entries = len(there)
    found.differences += wrong
    good = _verify_files(copy, records, found)
    intact = GoodFiles(copy, good)
    kept = board.derived if isinstance(board, Board) and board.derived != derived_here() else None
    known = benchmarks()
    rows = kept is not None and (kept / "rows").is_dir()
    made = compute(intact, list(there.values()), known, good, rows, workers, fresh)
    found.before = sum(one.before for one in made.values())
    for entry in there.values():
        one = verify_entry(intact, entry, known, good, made)
        found.differences += one.differences
        found.not_recomputed += one.not_recomputed
        found.verified += one.verified
    _guarded(found, "sealed windows", lambda: verify_sealed(intact, records))
    if kept is not None:
        found.differences += verify_rows(kept, list(there.values()))
    found.notes += _replaced(list(there.values())) + _history(records)
    for rotation in rotations(records):
        following = next_key(rotation, "")
        told = found.notes if following else found.differences
        told.append(
            f"record {rotation.seq} names {f'the key {following}' if following else 'no key'} for those after it"
        )
    named = named_files(records)
    folders = {path.split("/")[0] for path in named} | {"submissions", "scores"}
    found.differences += [f"{path} belongs to no record" for path in copy.strays(folders) if path not in named]
    return found


def _verify_history(
    copy: BoardReader,
    records: list[Record],
    unread: list[str],
    found: Verification,
    head: str | None,
    key: str | None,
) -> None:
    """Hold the ledger to itself, and to what was seen of it before."""
    problems = unread + _key_problems(records, found.key, key) + chain_problems(records, found.key, head)
    if not unread and not problems:
        problems += unlike_seen(records, found.key)
        problems += unlike_place(copy.address, found.key) if copy.address else []
        if not problems and (why := remember(records, found.key, copy.address)):
            found.notes.append(f"this history could not be kept for the next time: {why}")
    found.differences += problems


def _key_problems(records: list[Record], stated: str, known: str | None) -> list[str]:
    problems = []
    if known is not None and known != stated:
        problems.append(f"board.toml has the key {stated}, not {known}: this is another board, or a forged copy")
    if records and (opening := records[0].body.get("key")) != stated:
        problems.append(f"board.toml has the key {stated}, and the board was opened with {opening}")
    return problems


def _verify_files(copy: BoardReader, records: list[Record], found: Verification) -> set[str]:
    """Check every named file against its digest. Returns those that are what the ledger says."""
    hidden = set() if copy.whole else held_back(records, stamp(utc_now()))
    # A copy that was made before a window opened is as the board was then: without the draw.
    older = set() if copy.whole else held_back(records, "") - hidden
    good = set()
    for path, digest in named_files(records).items():
        if path in hidden:
            continue
        try:
            here = copy.file(path)
        except (Unavailable, BadData) as error:
            if path not in older or isinstance(error, BadData):
                found.differences.append(f"{path} could not be had: {error}")
                continue
            here = None
        if here is None and path in older:
            found.not_recomputed.append(f"{path} is not in this copy, and its window is open by now: take a newer copy")
        elif here is None:
            found.differences.append(f"{path} is missing")
        elif file_sha256(here) != digest:
            found.differences.append(f"{path} was changed: its sha256 is not the ledger's")
        else:
            good.add(path)
    return good


def _guarded(found: Verification, what: str, verified: Callable[[], tuple[list[str], list[str]]]) -> None:
    """Add what a part of the verification found. Records may be anybody's: one that breaks it is a difference."""
    try:
        differences, unsure = verified()
    except (FarshiftError, ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        differences, unsure = [f"{what} cannot be read: {type(error).__name__}: {first_line(error)}"], []
    found.differences += differences
    found.not_recomputed += unsure


def _history(records: Sequence[Record]) -> list[str]:
    """Of records of earlier versions only the chain, the signatures and the files are checked."""
    older = Counter(record.kind for record in records if record.kind in HISTORY)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(older.items()))
    only = "records of earlier versions, of which only chain, signature and files are checked"
    return [f"{only}: {kinds}"] if older else []


def _replaced(entries: Sequence[Entry]) -> list[str]:
    """Of scores that a newer one replaced only the digests are checked."""
    older = Counter(score.scorer for one in entries for score in one.scores[:-1])
    return [
        f"{count} scores by scorer {scorer}, replaced by newer ones, are compared by their digests only"
        for scorer, count in sorted(older.items())
    ]
