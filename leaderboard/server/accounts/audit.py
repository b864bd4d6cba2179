"""Audit log of events that the ledger does not record: tokens created and revoked, quotas exceeded, and the operating
system account that removed an entry."""

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
    """An event. time: UTC, ISO 8601. who: `operator NAME`, `token ID` or `address A`. what: the kind of event, such as
    `token-created`. detail: plain JSON, which never contains a token."""

    time: str
    who: str
    what: str
    detail: dict[str, Any]


def record_event(connection: Connection, who: str, what: str, **detail: Any) -> None:
    """Record an event in the transaction of the change that it describes."""
    detail_json = json.dumps(detail, sort_keys=True, ensure_ascii=False)
    connection.execute(
        insert(AUDIT).values(time=read_database_time(connection), who=who, what=what, detail=detail_json)
    )


def commit_event(store: Store, who: str, what: str, **detail: Any) -> None:
    """Record an event in a separate transaction."""
    with store.committing() as connection:
        record_event(connection, who, what, **detail)


def read_events(store: Store) -> list[Event]:
    """Return all events, the oldest first."""
    with store.reading() as connection:
        rows = connection.execute(select(AUDIT).order_by(AUDIT.c.number)).mappings().all()
    return [Event(format_iso_time(row["time"]), row["who"], row["what"], json.loads(row["detail"])) for row in rows]


def get_operator() -> str:
    """Return the name of the user who runs a command on the board's machine."""
    try:
        return f"operator {getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "operator"
