"""Migration of a ledger's database to this version's schema, by the migrations in `migrations/versions/`."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import FarshiftError, MissingExtra
from .store import SCHEMA, Store

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate_store(store: Store, to: str = "head") -> tuple[str | None, str | None]:
    """Apply the missing migrations in one transaction. Returns the schema before and after."""
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
    """Raise `FarshiftError` if this version does not know a schema."""
    if schema > SCHEMA:
        raise FarshiftError(
            f"the ledger in {store.name} has schema {schema} of a newer Farshift (this one has {SCHEMA}): upgrade it"
        )


def require_current(store: Store, where: Path) -> None:
    """Raise `FarshiftError` unless the database has a ledger of exactly this version's schema."""
    schema = store.schema()
    if schema is None:
        raise FarshiftError(f"{where}: its ledger, {store.name}, is missing: restore it")
    refuse_newer(store, schema)
    if schema < SCHEMA:
        raise FarshiftError(
            f"{where}: its ledger has schema {schema}, this version needs {SCHEMA}: run farshift board rescore {where}"
        )
