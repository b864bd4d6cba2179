"""Verification of a board or an export by anybody: checks the ledger's chain, and recomputes all scores from the
submissions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...benchmarks.benchmark import load_benchmarks
from ...core.errors import BadData, FarshiftError, Unavailable, get_first_line
from ...core.files import compute_file_sha256, write_atomically
from ...core.text import format_count
from ..board import Board
from ..entries import Entry, read_entries
from ..ledger import HISTORY, Record
from ..ledger.heads import find_address_conflicts, find_history_conflicts, remember_history
from ..ledger.record import find_chain_problems, find_next_key, list_rotations
from ..sealed.verify import verify_sealed
from ..sealed.window import format_time, get_utc_time
from ..storage.board_files import (
    find_file_problems,
    find_path_problem,
    find_withheld_files,
    list_files,
    list_named_files,
    resolve_file,
)
from ..storage.object_store import ObjectStore
from ..storage.readers import BoardReader
from ..validation.limits import SUBMISSION_BYTES
from .recompute import explain_older, find_differences, find_inconsistencies, recompute_entries


@dataclass
class Verification:
    """The results of a verification: entries, how many of them are `verified` and how many could not be recomputed
    here, every difference, and each reason why something could not be recomputed.

    records, head: the number of records, and the hash of the last one: with this hash a later verification detects
    removed records. key: the board's public key. notes: information that is not a difference; before: the number of
    submissions that an earlier verification by this version had computed."""

    entries: int = 0
    verified: int = 0
    entries_not_recomputed: int = 0
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


def verify_board(
    board: Board | BoardReader,
    head: str | None = None,
    key: str | None = None,
    *,
    workers: int = 1,
    fresh: bool = False,
) -> Verification:
    """Recompute everything: the chain, each signature, each file's digest, each score from its predictions, and each
    window.

    head: the hash of a record, key: the board's public key, both known from an earlier verification; workers: the
    number of processes, 0 for one a core; fresh: ignore cached results. The history is stored (`ledger/heads.py`) and
    compared with the one that this user saw last."""
    with _open_reader(board) as copy:
        return _verify_copy(copy, head, key, workers, fresh)


def _verify_copy(copy: BoardReader, head: str | None, key: str | None, workers: int, fresh: bool) -> Verification:
    records, unread = copy.read()
    result = Verification(records=len(records), head=records[-1].hash if records else "", key=str(copy.card.get("key")))
    result.differences += _verify_history(copy, records, unread, head, key, result.notes)
    result.differences += find_file_problems(records)
    entries, problems = read_entries(records)
    result.entries = len(entries)
    result.differences += problems
    files = _verify_files(copy, records, result)
    _verify_entries(list(entries.values()), files, workers, fresh, result)
    _verify_windows(records, files, result)
    result.notes += _describe_replaced_scores(list(entries.values())) + _describe_older_records(records)
    for rotation in list_rotations(records):
        key_after = find_next_key(rotation, "")
        named_key = f"the key {key_after}" if key_after else "no key"
        messages = result.notes if key_after else result.differences
        messages.append(f"record {rotation.seq} names {named_key} for the later records")
    named = list_named_files(records)
    folders = {path.split("/")[0] for path in named} | {"submissions", "scores"}
    result.differences += [f"{path} is not named in any record" for path in copy.strays(folders) if path not in named]
    return result


def _verify_history(
    copy: BoardReader, records: list[Record], unread: list[str], head: str | None, key: str | None, notes: list[str]
) -> list[str]:
    """Check the ledger itself, and compare it with the history seen before. Returns the differences."""
    board_key = str(copy.card.get("key"))
    problems = unread + _find_card_problems(copy.card, records, key) + find_chain_problems(records, board_key, head)
    if problems:
        return problems
    problems = find_history_conflicts(records, board_key)
    problems += find_address_conflicts(copy.address, board_key) if copy.address else []
    if not problems and (why := remember_history(records, board_key, copy.address)):
        notes.append(f"this history could not be stored for the next verification: {why}")
    return problems


def _find_card_problems(card: dict[str, Any], records: list[Record], known_key: str | None) -> list[str]:
    """Differences between board.toml and the ledger's first record, or the key from an earlier verification."""
    problems = []
    key = str(card.get("key"))
    if known_key is not None and known_key != key:
        problems.append(f"board.toml has the key {key}, not {known_key}: this is another board, or a forged copy")
    if records and (opening := records[0].body.get("key")) != key:
        problems.append(f"board.toml has the key {key}, but the board was opened with {opening}")
    if records and (name := records[0].body.get("name")) != card.get("name"):
        problems.append(f"board.toml has the name {card.get('name')!r}, but the ledger has {name!r}")
    return problems


def _verify_files(copy: BoardReader, records: list[Record], result: Verification) -> dict[str, Path]:
    """Check every named file against its digest. Returns the local paths of those that match the ledger."""
    hidden = set() if copy.has_private_files else find_withheld_files(records, format_time(get_utc_time()))
    # A copy made before a window opened does not have its draw.
    older = set() if copy.has_private_files else find_withheld_files(records, "") - hidden
    files = {}
    for path, digest in list_named_files(records).items():
        if path in hidden:
            continue
        try:
            file = copy.file(path)
        except (Unavailable, BadData) as error:
            if path not in older or isinstance(error, BadData):
                result.differences.append(f"{path} could not be read: {error}")
                continue
            file = None
        if file is None and path in older:
            result.not_recomputed.append(
                f"{path} is missing in this copy, and its window is open by now: get a newer copy"
            )
        elif file is None:
            result.differences.append(f"{path} is missing")
        elif compute_file_sha256(file) != digest:
            result.differences.append(f"{path} was changed: its sha256 differs from the ledger's")
        else:
            files[path] = file
    return files


def _verify_entries(
    entries: Sequence[Entry], files: dict[str, Path], workers: int, fresh: bool, result: Verification
) -> None:
    """Compare every entry with its recomputed score."""
    known = load_benchmarks()
    recomputed = recompute_entries(entries, known, files, workers, fresh)
    result.before = sum(computed.before for computed in recomputed.values())
    unavailable: dict[str, list[Entry]] = {}
    for entry in entries:
        problems = find_inconsistencies(entry, files)
        computed = recomputed.get(entry.submission)
        if entry.scores and (why := explain_older(known, entry)):
            unavailable.setdefault(why, []).append(entry)
        elif entry.scores and computed is not None and computed.unavailable:
            unavailable.setdefault(computed.unavailable, []).append(entry)
        elif entry.scores and computed is not None and computed.invalid:
            problems.append(f"its submission is no longer valid: {computed.invalid}")
        elif entry.scores and computed is not None:  # None: its submission is missing or was changed, reported above
            problems += find_differences(entry, computed)
            result.verified += not problems
        result.differences += [f"{entry}: {problem}" for problem in problems]
    for why, those in unavailable.items():
        more = f" and {format_count(len(those) - 1, 'other entry', 'other entries')}" if len(those) > 1 else ""
        result.not_recomputed.append(f"{those[0]}{more}: {why}")
        result.entries_not_recomputed += len(those)


def _verify_windows(records: Sequence[Record], files: dict[str, Path], result: Verification) -> None:
    try:
        differences, not_recomputed = verify_sealed(files, records)
    # Records are untrusted: an exception counts as a difference.
    except (FarshiftError, ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        differences = [f"sealed windows cannot be read: {type(error).__name__}: {get_first_line(error)}"]
        not_recomputed = []
    result.differences += differences
    result.not_recomputed += not_recomputed


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


class FolderReader:
    """A board's own folder."""

    has_private_files = True
    address = ""

    def __init__(self, board: Board) -> None:
        self.location, self.folder, self._board = board.location, board.path, board
        self.card: dict[str, Any] = board.card | {"baselines": board.baselines(), "open": board.is_open()}

    def read(self) -> tuple[list[Record], list[str]]:
        # Complete or roll back unfinished commits first, unless the chain is broken.
        with suppress(FarshiftError):
            self._board.committed_records()
        return self._board.ledger.store.records(), []

    def file(self, path: str) -> Path | None:
        return self._board.file(path)

    def strays(self, folders: set[str]) -> list[str]:
        return self._without_named(list_files(self.folder, folders))

    def _without_named(self, paths: list[str]) -> list[str]:
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
        return self._without_named(self._objects.paths(folders))
