"""Find objects in a ledger's database that the migrations did not make: a trigger or a rule could change what is
appended, a view could replace the records."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from .migrate import migrate_store
from .store import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection

_SQLITE = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name"

# Objects outside the system's schemas; for a trigger its definition and whether it is enabled.
_POSTGRESQL = """
SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'view' ELSE 'relation' END,
       n.nspname || '.' || c.relname, '', ''
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg_toast%'
UNION ALL
SELECT 'trigger', t.tgname, c.relname, pg_get_triggerdef(t.oid) || ' enabled ' || CAST(t.tgenabled AS text)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal
UNION ALL
SELECT 'rule', r.rulename, c.relname, pg_get_ruledef(r.oid)
FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND r.rulename <> '_RETURN'
UNION ALL
SELECT 'event trigger', e.evtname, '', CAST(e.evtevent AS text) FROM pg_event_trigger e
UNION ALL
SELECT 'function', n.nspname || '.' || p.proname, '', p.prosrc
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_t%'
"""

Objects = dict[tuple[str, str], str]
"""The definition of each object by kind and name, ignoring blanks."""


def find_foreign_objects(store: Store) -> list[str]:
    """List how a ledger's database differs from what this version's migrations make, sorted."""
    with store.reading() as connection:
        objects = _read_objects(connection)
    if store.dialect == "sqlite":
        with TemporaryDirectory(prefix="farshift-schema-") as folder:
            fresh = Store.in_file(Path(folder) / "ledger.sqlite")
            migrate_store(fresh)
            with fresh.reading() as connection:
                expected = _read_objects(connection)
            fresh.close()
    else:
        expected = _list_expected_postgresql(objects)
    problems = [
        f"has the {kind} {name}, which no migration creates" for kind, name in objects if (kind, name) not in expected
    ]
    problems += [f"lacks the {kind} {name}" for kind, name in expected if (kind, name) not in objects]
    for what, does in expected.items():
        if does and objects.get(what, does) != does:
            problems.append(f"has the {what[0]} {what[1]} with another definition than in the migrations")
    return sorted(f"the ledger's database {problem[:200]}" for problem in problems)


def _read_objects(connection: Connection) -> Objects:
    from sqlalchemy import text

    query = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    objects: Objects = {}
    for kind, name, on, does in connection.execute(text(query)).all():
        # A table's definition depends on the version of Alembic; columns are read by name.
        plain = "" if kind in ("table", "index") else " ".join(str(does).split()).lower()
        objects[kind, f"{name} on {on}" if kind in ("trigger", "rule") else str(name)] = plain
    return objects


def _list_expected_postgresql(objects: Objects) -> Objects:
    """The objects that the migrations create in PostgreSQL, in the schema of the records."""
    from .migrations.versions.v0002_append_only import POSTGRESQL
    from .migrations.versions.v0003_server import TABLES

    schema = next(
        (name.split(".")[0] for kind, name in objects if kind == "table" and name.endswith(".records")), "public"
    )
    expected: Objects = {("table", f"{schema}.{name}"): "" for name in ("records", "alembic_version", *TABLES)}
    for statement in POSTGRESQL:
        words = statement.split()
        if words[1] == "FUNCTION":
            expected["function", f"{schema}.{words[2].removesuffix('()')}"] = " ".join(
                statement.split("$$")[1].split()
            ).lower()
        else:
            name = f"{words[2]} on records"
            _, _, event = " ".join(words).partition(f"{words[2]} ")
            timing, _, action = event.partition(" ON records ")
            shown = f"create trigger {words[2]} {timing} on {schema}.records {action} enabled o"
            expected["trigger", name] = shown.lower().replace("update or delete", "delete or update")  # as shown
    return expected
