"""Verification of a board or an export by anybody: checks the ledger's chain, and recomputes all scores from the
submissions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...benchmarks.benchmark import load_benchmarks
from ...core.errors import BadData, FarshiftError, Unavailable, get_first_line
from ...core.files import compute_file_sha256, write_atomically
from ..board import Board
from ..board_view import get_derived_folder
from ..entries import Entry, read_entries
from ..ledger import HISTORY, Record
from ..ledger.chain import find_chain_problems
from ..ledger.heads import find_address_conflicts, find_history_conflicts, remember_history
from ..ledger.objects import find_foreign_objects
from ..ledger.rotation import find_next_key, list_rotations
from ..sealed.times import format_time, get_utc_time
from ..sealed.verify import verify_sealed
from ..storage.board_files import (
    find_file_problems,
    find_path_problem,
    find_withheld_files,
    list_files,
    list_named_files,
    resolve_file,
)
from ..storage.object_store import ObjectStore
from ..storage.readers import BoardReader, VerifiedFilesReader
from ..validation.limits import SUBMISSION_BYTES
from .verify_entries import recompute_entries, verify_entry
from .verify_metadata import verify_card, verify_rows, verify_times


@dataclass
class Verification:
    """The results of a verification: entries, how many of them are `verified`, every difference, and what could not be
    recomputed here, with the reason.

    records, head: the number of records, and the hash of the last one: with this hash a later verification detects
    removed records. key: the board's public key. notes: information that is not a difference; before: the number of
    submissions that an earlier verification by this version had computed."""

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
    def is_complete(self) -> bool:
        """Whether everything was recomputed and agrees with the board."""
        return not self.differences and not self.not_recomputed


class FolderReader:
    """A board's own folder."""

    has_private_files = True
    address = ""

    def __init__(self, board: Board) -> None:
        self.location, self.folder, self._board = board.location, board.path, board
        self.card: dict[str, Any] = board.card | {"baselines": board.baselines()}

    def read(self) -> tuple[list[Record], list[str]]:
        # Complete or roll back unfinished commits first, unless the chain is broken.
        with suppress(FarshiftError):
            self._board.committed_records()
        return self._board.ledger.store.records(), []

    def file(self, path: str) -> Path | None:
        return self._board.file(path)

    def strays(self, folders: set[str]) -> list[str]:
        paths = list_files(self.folder, folders)
        return sorted(set(paths) - set(list_named_files(self._board.ledger.store.records())))  # entered meanwhile


class StoreReader(FolderReader):
    """A board with its files in an object store: they are fetched from there, whatever copies its folder has."""

    def __init__(self, board: Board, objects: ObjectStore, folder: Path) -> None:
        super().__init__(board)
        self.folder, self._objects = folder, objects

    def file(self, path: str) -> Path | None:
        if not find_path_problem(path) and not (self.folder / path).is_file():
            content = self._objects.get(path, SUBMISSION_BYTES)
            if content is not None:
                write_atomically(self.folder / path, content)
        return resolve_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        paths = self._objects.paths(folders)
        return sorted(set(paths) - set(list_named_files(self._board.ledger.store.records())))


def verify_board(
    board: Board | BoardReader,
    head: str | None = None,
    key: str | None = None,
    *,
    workers: int = 1,
    fresh: bool = False,
) -> Verification:
    """Recompute everything: the chain, each signature, each file's digest, each score from its predictions, each
    window, and the row scores in the board's folder.

    head: the hash of a record, key: the board's public key, both known from an earlier verification; workers: the
    number of processes, 0 for one a core; fresh: ignore cached results. The history is stored (`ledger/heads.py`) and
    compared with the one that this user saw last."""
    with _open_reader(board) as copy:
        return _verify_copy(board, copy, head, key, workers, fresh)


@contextmanager
def _open_reader(board: Board | BoardReader) -> Iterator[BoardReader]:
    """Open the reader of a board's files, within the context."""
    if not isinstance(board, Board):
        yield board
    elif board.objects is None:
        yield FolderReader(board)
    else:
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            yield StoreReader(board, board.objects, Path(folder))


def _verify_copy(
    board: Board | BoardReader,
    copy: BoardReader,
    head: str | None,
    key: str | None,
    workers: int,
    fresh: bool,
) -> Verification:
    records, unread = copy.read()
    verification = Verification(
        records=len(records), head=records[-1].hash if records else "", key=str(copy.card.get("key"))
    )
    _verify_history(copy, records, unread, verification, head, key)
    verification.differences += find_file_problems(records) + verify_card(copy.card, records) + verify_times(records)
    if isinstance(board, Board):
        verification.differences += find_foreign_objects(board.ledger.store)
    entries, wrong = read_entries(records)
    verification.entries = len(entries)
    verification.differences += wrong
    good = _verify_files(copy, records, verification)
    intact = VerifiedFilesReader(copy, good)
    derived = board.derived if isinstance(board, Board) and board.derived != get_derived_folder() else None
    known = load_benchmarks()
    rows = derived is not None and (derived / "rows").is_dir()
    recomputed = recompute_entries(intact, list(entries.values()), known, good, rows, workers, fresh)
    verification.before = sum(result.before for result in recomputed.values())
    for entry in entries.values():
        result = verify_entry(intact, entry, known, good, recomputed)
        verification.differences += result.differences
        verification.not_recomputed += result.not_recomputed
        verification.verified += result.verified
    _add_findings(verification, "sealed windows", lambda: verify_sealed(intact, records))
    if derived is not None:
        verification.differences += verify_rows(derived, list(entries.values()))
    verification.notes += _describe_replaced_scores(list(entries.values())) + _describe_older_records(records)
    for rotation in list_rotations(records):
        following = find_next_key(rotation, "")
        messages = verification.notes if following else verification.differences
        messages.append(
            f"record {rotation.seq} names {f'the key {following}' if following else 'no key'} for the later records"
        )
    named = list_named_files(records)
    folders = {path.split("/")[0] for path in named} | {"submissions", "scores"}
    verification.differences += [f"{path} is named by no record" for path in copy.strays(folders) if path not in named]
    return verification


def _verify_history(
    copy: BoardReader,
    records: list[Record],
    unread: list[str],
    verification: Verification,
    head: str | None,
    key: str | None,
) -> None:
    """Check the ledger itself, and compare it with the history seen before."""
    problems = (
        unread
        + _find_key_problems(records, verification.key, key)
        + find_chain_problems(records, verification.key, head)
    )
    if not unread and not problems:
        problems += find_history_conflicts(records, verification.key)
        problems += find_address_conflicts(copy.address, verification.key) if copy.address else []
        if not problems and (why := remember_history(records, verification.key, copy.address)):
            verification.notes.append(f"this history could not be stored for the next verification: {why}")
    verification.differences += problems


def _find_key_problems(records: list[Record], stated: str, known: str | None) -> list[str]:
    problems = []
    if known is not None and known != stated:
        problems.append(f"board.toml has the key {stated}, not {known}: this is another board, or a forged copy")
    if records and (opening := records[0].body.get("key")) != stated:
        problems.append(f"board.toml has the key {stated}, but the board was opened with {opening}")
    return problems


def _verify_files(copy: BoardReader, records: list[Record], verification: Verification) -> set[str]:
    """Check every named file against its digest. Returns those that match the ledger."""
    hidden = set() if copy.has_private_files else find_withheld_files(records, format_time(get_utc_time()))
    # A copy made before a window opened does not have its draw.
    older = set() if copy.has_private_files else find_withheld_files(records, "") - hidden
    good = set()
    for path, digest in list_named_files(records).items():
        if path in hidden:
            continue
        try:
            file = copy.file(path)
        except (Unavailable, BadData) as error:
            if path not in older or isinstance(error, BadData):
                verification.differences.append(f"{path} could not be read: {error}")
                continue
            file = None
        if file is None and path in older:
            verification.not_recomputed.append(
                f"{path} is missing in this copy, and its window is open by now: get a newer copy"
            )
        elif file is None:
            verification.differences.append(f"{path} is missing")
        elif compute_file_sha256(file) != digest:
            verification.differences.append(f"{path} was changed: its sha256 differs from the ledger's")
        else:
            good.add(path)
    return good


def _add_findings(verification: Verification, what: str, run_check: Callable[[], tuple[list[str], list[str]]]) -> None:
    """Add the findings of a part of the verification. Records are untrusted: an exception counts as a difference."""
    try:
        differences, unsure = run_check()
    except (FarshiftError, ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        differences, unsure = [f"{what} cannot be read: {type(error).__name__}: {get_first_line(error)}"], []
    verification.differences += differences
    verification.not_recomputed += unsure


def _describe_older_records(records: Sequence[Record]) -> list[str]:
    """Describe records of earlier versions, for which only chain, signatures and files are checked."""
    older = Counter(record.kind for record in records if record.kind in HISTORY)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(older.items()))
    only = "records of earlier versions, of which only chain, signature and files are checked"
    return [f"{only}: {kinds}"] if older else []


def _describe_replaced_scores(entries: Sequence[Entry]) -> list[str]:
    """Describe replaced scores, for which only digests are checked."""
    older = Counter(score.scorer for entry in entries for score in entry.scores[:-1])
    return [
        f"{count} scores by scorer {scorer}, replaced by newer ones, are compared by their digests only"
        for scorer, count in sorted(older.items())
    ]
