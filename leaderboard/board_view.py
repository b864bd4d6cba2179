"""What a board shows, by its records and the files that they name: a board in its folder, an export, or one behind an
address, now or as it stood at an earlier record."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..benchmarks.scoring.record import Score
from ..core.errors import FarshiftError
from ..core.files import get_cache_root
from .entries import Entry, ScoredEntry, ScoreRecord, get_submission_path, read_valid_entries
from .ledger import Record
from .storage.board_files import resolve_file
from .teams import identify_team

if TYPE_CHECKING:
    from .storage.readers import BoardReader


class BoardView(ABC):
    """A board to be read. path: the folder of its files; card: what board.toml says; place: how messages call it."""

    path: Path
    card: dict[str, Any]
    location: str

    @abstractmethod
    def records(self) -> list[Record]:
        """Its records; `FarshiftError` names the first thing that is wrong with them."""

    def committed_records(self) -> list[Record]:
        """The records, when every file that they name has come to its place."""
        return self.records()

    def file(self, path: str) -> Path | None:
        """A file that a record names, ready to be read; None where it is missing."""
        return resolve_file(self.path, path)

    @property
    def derived(self) -> Path:
        """Where what can be computed again is kept."""
        return get_derived_folder()

    @property
    def name(self) -> str:
        """The board's title, as the ledger has it."""
        return str(self.records()[0].body.get("name", self.card["name"]))

    @property
    def opened(self) -> str:
        """When the board was opened, as the ledger has it."""
        return self.records()[0].time

    def baselines(self) -> dict[str, str]:
        """For each benchmark the model that its entries are compared with, as an export's card says."""
        baselines = self.card.get("baselines", {})
        return (
            baselines
            if isinstance(baselines, dict) and all(isinstance(model, str) for model in baselines.values())
            else {}
        )

    def standings(self) -> list[ScoredEntry]:
        """Every entry that is in a table, in the ledger's order, with its newest score, whose digest is checked."""
        return [self.standing_of(entry) for entry in self._entries() if entry.left is None]

    def removed_entries(self) -> list[ScoredEntry]:
        """Every entry that was withdrawn or removed, in the ledger's order."""
        return [self.standing_of(entry) for entry in self._entries() if entry.left is not None]

    def attempts(self) -> dict[tuple[str, str], int]:
        """How many entries each team had scored in each table: (`identify_team`, entry identity) to a count. Entries
        that were withdrawn or removed count: their scores were seen."""
        scored = {
            (identify_team(entry), score.entry_identity, entry.entry)
            for entry in self._entries()
            for score in entry.scores
        }
        return dict(sorted(Counter((team, identity) for team, identity, _ in scored).items()))

    def stored(self, score: ScoreRecord) -> bytes:
        """The file of a score, checked against its digest in the ledger."""
        file = self.file(score.path)
        content = file.read_bytes() if file is not None else b""
        if sha256(content).hexdigest() != score.digest:
            raise FarshiftError(
                f"{self.path / score.path} is missing or was changed: farshift board verify {self.location} lists what "
                "differs"
            )
        return content

    def submission_file(self, digest: str) -> Path:
        """Where a submission lies."""
        return self.file(get_submission_path(digest)) or self.path / get_submission_path(digest)

    def _entries(self) -> list[Entry]:
        return list(read_valid_entries(self.committed_records()).values())

    def standing_of(self, entry: Entry) -> ScoredEntry:
        """An entry with its newest score, whose digest is checked."""
        if not entry.scores:
            raise FarshiftError(f"{entry} was never scored: farshift board verify {self.location}")
        return ScoredEntry(**vars(entry), score=Score.from_dict(json.loads(self.stored(entry.scores[-1]))))


class ReadOnlyBoard(BoardView):
    """A board as some records and a reader of its files have it. derived: as in `BoardView`."""

    def __init__(self, reader: BoardReader, records: Sequence[Record], derived: Path | None = None) -> None:
        self.path, self.card, self.location = reader.folder, reader.card, reader.location
        self._reader, self._records, self._derived = reader, list(records), derived

    def records(self) -> list[Record]:
        return self._records

    def file(self, path: str) -> Path | None:
        return self._reader.file(path)

    @property
    def derived(self) -> Path:
        return self._derived or get_derived_folder()


def get_derived_folder() -> Path:
    """Where this user keeps what was computed from boards that are not written to."""
    return get_cache_root() / "boards"


def is_writable(folder: Path) -> bool:
    """Whether this process may write into a folder."""
    return os.access(folder, os.W_OK)
