"""Bringing a ledger's database to the schema of this version, by the migrations in `migrations/versions/`."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import FarshiftError, MissingExtra
from .store import SCHEMA, Store

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate_store(store: Store, to: str = "head") -> tuple[str | None, str | None]:
    """Apply the migrations that are missing, in one transaction. Returns the schema before and after it."""
    try:
        from alembic import command
        from alembic.config import Config
    except ImportError as error:
        raise MissingExtra("a board's ledger", "board") from error
    before = store.schema()
    if before is not None:
        refuse_newer(store, before)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with store.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, to)
    return before, store.schema()


def refuse_newer(store: Store, schema: str) -> None:
    """`FarshiftError` where a schema is one that this version does not know."""
    if schema > SCHEMA:
        raise FarshiftError(
            f"the ledger in {store.name} has schema {schema}, of a newer Farshift (this one knows {SCHEMA}): upgrade it"
        )


def require_current(store: Store, where: Path) -> None:
    """`FarshiftError` unless the database holds a ledger of exactly this version's schema."""
    schema = store.schema()
    if schema is None:
        raise FarshiftError(f"{where}: its ledger, {store.name}, is missing: put it back")
    refuse_newer(store, schema)
    if schema < SCHEMA:
        raise FarshiftError(
            f"{where}: its ledger has schema {schema}, this version needs {SCHEMA}: farshift board rescore {where}"
        )
