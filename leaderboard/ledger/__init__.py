"""The ledger: an append-only, hash-chained, signed record of all events on a board, in an SQL database.

record.py      one record: its fields, its hash, its line
chain.py       checks of a chain of records
keys.py        the board's ed25519 key
store.py       the table of records in SQLite or PostgreSQL
migrations/    the schema of that table (Alembic)
book.py        all of it together: append, read
"""

from .book import Ledger as Ledger
from .record import HISTORY as HISTORY
from .record import KINDS as KINDS
from .record import Record as Record
