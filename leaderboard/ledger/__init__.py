"""The ledger: an append-only, hash-chained, signed record of all that happened on a board, in SQL.

record.py      one record: its fields, its hash, its line
chain.py       what is wrong with a chain of records
keys.py        the board's ed25519 key
store.py       the table of records in SQLite or PostgreSQL
migrations/    how that table came to be (Alembic)
book.py        all of it together: append, read
"""

from .book import Ledger as Ledger
from .record import HISTORY as HISTORY
from .record import KINDS as KINDS
from .record import Record as Record
