"""Resumable uploads (tus 1.0): how much of each is on the disk, in the ledger's database."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, delete, func, insert, select, update

from ...ledger.store import Store
from ..settings import ServerSettings
from ..tables import UPLOADS, now


@dataclass(frozen=True)
class Upload:
    """size: its bytes; received: how many of them are on the disk; digest: the sha256 that the client announced, or
    empty; job: the submission that it became, or empty."""

    id: str
    owner: str
    token: str
    size: int
    received: int
    digest: str
    touched: float
    job: str


class Uploads:
    """The uploads of one board."""

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self.store, self.settings = store, settings

    def begin(self, id: str, owner: str, token: str, size: int, digest: str) -> bool:
        """Note an upload that begins; False where its owner has as many unfinished ones as may wait."""
        with self.store.committing() as connection:
            mine = select(func.count()).where(UPLOADS.c.owner == owner, UPLOADS.c.job == "")
            if connection.execute(mine).scalar_one() >= self.settings.queued_at_once:
                return False
            row = {"id": id, "owner": owner, "token": token, "size": size, "received": 0, "digest": digest, "job": ""}
            connection.execute(insert(UPLOADS).values(**row, touched=now(connection)))
        return True

    def find(self, id: str, owner: str) -> Upload | None:
        """An owner's upload."""
        with self.store.reading() as connection:
            query = select(UPLOADS).where(UPLOADS.c.id == id, UPLOADS.c.owner == owner)
            row = connection.execute(query).mappings().first()
        return None if row is None else Upload(**{name: row[name] for name in Upload.__dataclass_fields__})

    def received(self, id: str, start: int, bytes: int) -> bool:
        """So many bytes are kept, of which those from `start` on are new; False where others came from there on in the
        meantime, to another server."""
        with self.store.committing() as connection:
            values = {"received": bytes, "touched": now(connection)}
            mine = and_(UPLOADS.c.id == id, UPLOADS.c.received == start)
            return connection.execute(update(UPLOADS).where(mine).values(values)).rowcount == 1

    def became(self, id: str, job: str) -> None:
        """It is whole, and was queued."""
        with self.store.committing() as connection:
            values = {"job": job, "touched": now(connection)}
            connection.execute(update(UPLOADS).where(UPLOADS.c.id == id).values(values))

    def end(self, id: str) -> None:
        """Forget an upload."""
        with self.store.committing() as connection:
            connection.execute(delete(UPLOADS).where(UPLOADS.c.id == id))

    def unfinished(self) -> set[str]:
        """The ids of those that are under way. Those that nothing came to for long are forgotten first."""
        with self.store.committing() as connection:
            oldest = now(connection) - self.settings.upload_hours * 3600
            connection.execute(delete(UPLOADS).where(UPLOADS.c.touched < oldest))
            return set(connection.execute(select(UPLOADS.c.id).where(UPLOADS.c.job == "")).scalars())
