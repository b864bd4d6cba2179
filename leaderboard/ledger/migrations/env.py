"""Run by Alembic: the migrations, on the connection and within the transaction of `migrate.py`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
