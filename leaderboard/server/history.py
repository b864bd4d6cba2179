"""A board's ledger up to one record, and what is derived from it alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ..entries import Entry, read_valid_entries
from ..ledger import Record
from ..sealed.times import format_time, get_utc_time
from ..sealed.window import Window, read_windows
from ..storage.board_files import find_sealed_answers, find_sealed_draws, list_named_files
from .answers import ResponseBody


class History:
    """The first records of a ledger. key: the board's first public key."""

    def __init__(self, records: Sequence[Record], key: str) -> None:
        self.records, self.key = tuple(records), key
        self._cache: dict[str, Any] = {}

    @property
    def head(self) -> Record:
        return self.records[-1]

    @property
    def size(self) -> int:
        return len(self.records)

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All entries by name, in the ledger's order."""
        return read_valid_entries(self.records)

    @cached_property
    def windows(self) -> dict[str, Window]:
        return read_windows(self.records)

    def file(self, path: str) -> str | None:
        """Return the sha256 of a file that is public now (the files of an export), or None for another path."""
        early = max(format_time(get_utc_time()), self.head.time) < self._draws.get(path, "")
        return None if early or path in self._answers else self._named.get(path)

    @cached_property
    def _named(self) -> dict[str, str]:
        return list_named_files(self.records)

    @cached_property
    def _answers(self) -> set[str]:
        return find_sealed_answers(self.records)

    @cached_property
    def _draws(self) -> dict[str, str]:
        return find_sealed_draws(self.records)

    @cached_property
    def lines(self) -> ResponseBody:
        """The ledger's lines as in an export."""
        return ResponseBody(b"".join(record.line() + b"\n" for record in self.records), "application/jsonl")

    def get_cached(self, name: str, make: Callable[[], Any]) -> Any:
        """Return `make()`, computed once per name."""
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]
