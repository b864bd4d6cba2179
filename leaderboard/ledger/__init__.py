"""The ledger: an append-only, hash-chained, signed record of all events on a board, in an SQL database.

record.py      one record: its fields, hash and line; checks of a chain of records
keys.py        ed25519 keys
store.py       the board's database, SQLite or PostgreSQL
book.py        the ledger in it: append, read
heads.py       the histories that this user has seen
"""

from .record import KINDS as KINDS
from .record import Record as Record
