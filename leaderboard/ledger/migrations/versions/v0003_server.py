"""The tables of a board's server besides the ledger: access tokens, uploads, the queue of submissions, quota usage,
and an audit log of rejections and removals. None of them is part of a score, of an export or of a verification. They
are not shared with `server/tables.py`, because a published migration must not change."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

TABLES = ("tokens", "uploads", "jobs", "charges", "audit")


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.Column("team", sa.Text, nullable=False),
        sa.Column("team_key", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("expires", sa.Double),
        sa.Column("revoked", sa.Double),
    )
    op.create_table(
        "uploads",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("received", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("touched", sa.Double, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("team", sa.Text, nullable=False),
        sa.Column("team_key", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("lease", sa.Double),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("entries", sa.Text, nullable=False),
        sa.Column("problems", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        # The same bytes of one team are one job, so a request whose response was lost can be repeated.
        sa.UniqueConstraint("owner", "digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobs_state", "jobs", ["state", "number"])
    op.create_table(
        "charges",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
    )
    op.create_index("charges_owner", "charges", ["owner", "time"])
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
