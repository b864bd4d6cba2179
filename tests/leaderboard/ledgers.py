"""Ledgers with a key of their own, for tests that need no board."""

from __future__ import annotations

from pathlib import Path

from farshift.leaderboard.ledger.book import Ledger
from farshift.leaderboard.ledger.keys import create_key
from farshift.leaderboard.ledger.store import Store


def ledger_in(folder: Path, url: str | None = None) -> Ledger:
    """The ledger in a database (a file in `folder` by default), made and opened where there is none yet."""
    key = create_key(folder / "key.pem")
    store = Store.in_file(folder / "ledger.sqlite") if url is None else Store(url)
    store.create_tables()
    ledger = Ledger(store, key, key.public)
    if not ledger.read_unchecked():
        ledger.append([("opened", {"name": "a test", "key": key.public})])
    return ledger


def withdrawn(number: int) -> tuple[str, dict[str, str]]:
    """An event to append: its content does not matter."""
    return "withdrawn", {"entry": f"{number:016x}", "reason": "tried again"}
