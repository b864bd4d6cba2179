"""Triggers by which the database refuses to change, delete or reorder records."""

from alembic import op

revision = "0002"
down_revision = "0001"

SQLITE = (
    """
    CREATE TRIGGER records_follow BEFORE INSERT ON records
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq) + 1, 0) FROM records)
      OR NEW.previous IS NOT coalesce((SELECT hash FROM records ORDER BY seq DESC LIMIT 1), printf('%.64d', 0))
      OR EXISTS (SELECT 1 FROM records WHERE hash = NEW.hash)
    BEGIN SELECT RAISE(ABORT, 'a record must follow the last one'); END
    """,
    """
    CREATE TRIGGER records_stay BEFORE UPDATE ON records
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: a record is never changed'); END
    """,
    """
    CREATE TRIGGER records_remain BEFORE DELETE ON records
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: a record is never deleted'); END
    """,
)

POSTGRESQL = (
    """
    CREATE FUNCTION records_follow() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE last record;
    BEGIN
        SELECT seq, hash INTO last FROM records ORDER BY seq DESC LIMIT 1;
        IF NEW.seq IS DISTINCT FROM coalesce(last.seq + 1, 0)
           OR NEW.previous IS DISTINCT FROM coalesce(last.hash, repeat('0', 64)) THEN
            RAISE EXCEPTION 'a record must follow the last one';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE FUNCTION records_stay() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the ledger is append-only: a record is never changed or deleted';
    END $$
    """,
    "CREATE TRIGGER records_follow BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION records_follow()",
    "CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE ON records FOR EACH ROW EXECUTE FUNCTION records_stay()",
    "CREATE TRIGGER records_remain BEFORE TRUNCATE ON records FOR EACH STATEMENT EXECUTE FUNCTION records_stay()",
)


def upgrade() -> None:
    connection = op.get_bind()
    for statement in POSTGRESQL if connection.dialect.name == "postgresql" else SQLITE:
        connection.exec_driver_sql(statement)
