"""Who did what to a board that its ledger does not say: tokens made and revoked, quotas that were exceeded, and whose
account of the machine removed an entry."""

from __future__ import annotations

import getpass
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select

from ...ledger.store import Store
from ..intake.job import format_iso_time
from ..tables import AUDIT, read_database_time

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True)
class Event:
    """time: UTC, ISO 8601. who: `operator NAME`, `token ID`, `address A`; what: `token-created` and the like; detail:
    plain JSON. Never a token."""

    time: str
    who: str
    what: str
    detail: dict[str, Any]


def record_event(connection: Connection, who: str, what: str, **detail: Any) -> None:
    """Write an event down, in the transaction of what it tells of."""
    detail_json = json.dumps(detail, sort_keys=True, ensure_ascii=False)
    connection.execute(
        insert(AUDIT).values(time=read_database_time(connection), who=who, what=what, detail=detail_json)
    )


def commit_event(store: Store, who: str, what: str, **detail: Any) -> None:
    """The same, in a transaction of its own."""
    with store.committing() as connection:
        record_event(connection, who, what, **detail)


def read_events(store: Store) -> list[Event]:
    """Every event, the oldest first."""
    with store.reading() as connection:
        rows = connection.execute(select(AUDIT).order_by(AUDIT.c.number)).mappings().all()
    return [Event(format_iso_time(row["time"]), row["who"], row["what"], json.loads(row["detail"])) for row in rows]


def get_operator() -> str:
    """Who runs a command on the board's machine."""
    try:
        return f"operator {getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "operator"
