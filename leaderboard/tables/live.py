"""A board's tables kept up to date while it is served: what did not change is not worked out again.

A `LiveBoard` shows what `take_snapshot` shows, in every record and in every byte of its pages, for it is the same
function: it takes from memory what is a function of inputs that are as they were (`statistics/remembered.py`). Of the
ledger only the records are read that came since, and held to the chain of those before them; scores are read once, each
checked against its digest. A new entry costs its own table and its suite's aggregates; nothing new costs a look at the
ledger's head.

What was worked out is kept on disk, too (`kept_tables.py`): who starts anew reads the tables that are as they were, and
none of their rows.

What lies in memory: the snapshot itself, with the score of every entry; of each table the differences of its ranked
entries (9 bytes a pair); and rows, at most ROW_BYTES of them (about 2 bytes a row, where answers are right or wrong),
those of the tables that changed last. Rows that are there no more are read again from `derived/rows/` when their table
changes. That they could not be had is remembered, too, until then.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

from ..board_view import BoardView
from ..entries import Entry, Standing, add_entries, require_sound
from ..ledger import Record
from .kept_tables import KeptTables
from .snapshot import Memory, Snapshot, take_snapshot

ROW_BYTES = 1 << 30
"""The most bytes of rows that are kept in memory, over all tables."""


class LiveBoard:
    """A board's snapshot, always as of its ledger's head. For any number of threads, of which one at a time works."""

    def __init__(self, view: BoardView, row_bytes: int = ROW_BYTES) -> None:
        self.view = view
        self._kept = KeptTables(view.derived, str(view.card.get("key", "")))
        self._memory = Memory(row_bytes, self._kept)
        self._held = _Held(view, self._memory)
        self._lock = Lock()
        self._last: tuple[tuple[str, dict[str, str]], Snapshot] | None = None

    def snapshot(self, wait: bool = True) -> Snapshot:
        """The board as it stands now. wait: whether to wait for another thread that is bringing it up to date; else the
        one before is returned, if there is one. `FarshiftError` as of `take_snapshot`, and where records that were read
        before are not there any more."""
        last = self._last
        if not self._lock.acquire(blocking=wait or last is None):
            assert last is not None
            return last[1]
        try:
            self._held.go_on()
            state = (self._held.records()[-1].hash, self._held.baselines())
            if self._last is None or self._last[0] != state:
                self._last = state, take_snapshot(self._held, memory=self._memory)
                self._memory.known.turn()
            return self._last[1]
        finally:
            self._lock.release()

    def keep(self) -> None:
        """Keep on disk what was worked out since the last time: for after it is shown, as nobody waits for it."""
        with self._lock:
            self._kept.write()


class _Held(BoardView):
    """A board by the records that were read of it, whose entries and scores are read once."""

    def __init__(self, view: BoardView, memory: Memory) -> None:
        self.path, self.card, self.place = view.path, view.card, view.place
        self._view, self._memory = view, memory
        self._records: list[Record] = []
        self._found: dict[str, Entry] = {}

    def go_on(self) -> None:
        """Read the records that came since."""
        new = self._view.following(self._records[-1]) if self._records else self._view.settled()
        if new:
            found = dict(self._found)
            require_sound(add_entries(found, new))
            self._records, self._found = [*self._records, *new], found

    def records(self) -> list[Record]:
        return self._records

    def file(self, path: str) -> Path | None:
        return self._view.file(path)

    @property
    def derived(self) -> Path:
        return self._view.derived

    def baselines(self) -> dict[str, str]:
        return self._view.baselines()

    def _entries(self) -> list[Entry]:
        return list(self._found.values())

    def standing_of(self, entry: Entry) -> Standing:
        make: Any = super().standing_of
        found: Standing = self._memory.known.of(("standing", entry.entry), entry, lambda: make(entry))
        return found
