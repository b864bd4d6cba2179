"""A read-only view of a board, by its records and the files that they name: a board's folder, an export, or a board
behind a URL, at present or at an earlier record."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from copy import copy
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from ..benchmarks.scoring.record import Score
from ..core.documents import parse_json
from ..core.errors import FarshiftError
from ..core.files import get_cache_root
from .entries import Entry, ScoredEntry, ScoreRecord, get_submission_path, read_valid_entries
from .ledger import Record
from .storage.board_files import resolve_file

PUBLIC, EXPERIMENTS = KINDS = ("public", "experiments")


class BoardView(ABC):
    """A board for reading. path: the folder of its files; card: the content of board.toml; location: its name in
    messages; address: the URL that it was fetched from, if any; has_private_files: whether it must also have files that
    are not public yet."""

    path: Path
    card: dict[str, Any]
    location: str
    address = ""
    has_private_files = False
    _records: Sequence[Record] | None = None

    def records(self) -> list[Record]:
        """The board's records; `FarshiftError` names the first problem in them."""
        return self.read_checked() if self._records is None else list(self._records)

    def at(self, records: Sequence[Record]) -> Self:
        """This board with some of its first records."""
        view = copy(self)
        view._records = records
        return view

    @abstractmethod
    def read_checked(self) -> list[Record]:
        """Read the records now, and check them."""

    @abstractmethod
    def read(self) -> tuple[list[Record], list[str]]:
        """The unchecked records, and the problems of lines that are not records."""

    @abstractmethod
    def strays(self, folders: set[str]) -> list[str]:
        """The files in these folders, if they can be listed."""

    def committed_records(self) -> list[Record]:
        """Return the records once every file that they name is in place."""
        return self.records()

    def file(self, path: str) -> Path | None:
        """The local path of a file that a record names; None if it is missing. Raises `Unavailable` if a server does
        not return it, and `BadData` if it is too large."""
        return resolve_file(self.path, path)

    @property
    def derived(self) -> Path:
        """The folder for results that can be recomputed: in the board's, or in the user's cache for a copy of a board
        or one that is read-only."""
        own = self.has_private_files and is_writable(self.path)
        return self.path / "derived" if own else get_cache_root() / "boards"

    @property
    def name(self) -> str:
        """The board's title, from the ledger."""
        return str(self.records()[0].body.get("name", self.card["name"]))

    @property
    def opened(self) -> str:
        """The time when the board was opened, from the ledger."""
        return self.records()[0].time

    @property
    def kind(self) -> str:
        """`public`, which ranks one entry a team, or `experiments`, which ranks all; from the ledger."""
        return str(self.records()[0].body.get("kind", PUBLIC))

    def is_open(self) -> bool:
        """Whether anybody may submit without a token, from an export's card."""
        return self.card.get("open") is True

    def baselines(self) -> dict[str, str]:
        """For each benchmark the plain baseline, which its entries are compared with, from an export's card."""
        baselines = self.card.get("baselines", {})
        return (
            baselines
            if isinstance(baselines, dict) and all(isinstance(model, str) for model in baselines.values())
            else {}
        )

    def standings(self) -> list[ScoredEntry]:
        """Every entry that is in a table, in ledger order, with its newest score, checked against its digest."""
        return [self.standing_of(entry) for entry in self._entries() if entry.left is None]

    def removed_entries(self) -> list[ScoredEntry]:
        """Every entry that was withdrawn or removed, in ledger order."""
        return [self.standing_of(entry) for entry in self._entries() if entry.left is not None]

    def attempts(self) -> dict[tuple[str, str], int]:
        """The number of scored entries by team and table: (team, entry identity) to a count. Withdrawn and
        removed entries count, because their scores were visible."""
        scored = {
            (entry.team_identity, score.entry_identity, entry.entry)
            for entry in self._entries()
            for score in entry.scores
        }
        return dict(sorted(Counter((team, identity) for team, identity, _ in scored).items()))

    def read_file(self, path: str, digest: str) -> bytes:
        """The content of a file that a record names, checked against its digest in the ledger."""
        file = self.file(path)
        content = file.read_bytes() if file is not None else b""
        if sha256(content).hexdigest() != digest:
            raise FarshiftError(
                f"{self.path / path} is missing or was changed: run farshift board verify {self.location} to list what "
                "differs"
            )
        return content

    def read_score(self, score: ScoreRecord) -> Score:
        """A score, whose file is checked against its digest in the ledger."""
        content = self.read_file(score.path, score.digest)
        return Score.from_dict(parse_json(content, dict, f"{self.location}: {score.path}"))

    def submission_file(self, digest: str) -> Path:
        """The path of a submission's file."""
        return self.file(get_submission_path(digest)) or self.path / get_submission_path(digest)

    def _entries(self) -> list[Entry]:
        return list(read_valid_entries(self.committed_records()).values())

    def standing_of(self, entry: Entry) -> ScoredEntry:
        """An entry with its newest score, checked against its digest."""
        if not entry.scores:
            raise FarshiftError(f"{entry} has no score: run farshift board verify {self.location}")
        return ScoredEntry(**vars(entry), score=self.read_score(entry.scores[-1]))


def is_writable(folder: Path) -> bool:
    """Whether this process may write to a folder."""
    return os.access(folder, os.W_OK)
