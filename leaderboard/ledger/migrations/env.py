"""Alembic environment: runs the migrations on the connection and in the transaction of `migrate.py`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
