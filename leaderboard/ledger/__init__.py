"""The ledger: an append-only, hash-chained, signed record of all events on a board, in an SQL database.

record.py      one record: its fields, hash and line; checks of a chain of records; rotation of the board's key
keys.py        ed25519 keys
store.py       the table of records in SQLite or PostgreSQL
book.py        all of it together: append, read
heads.py       the histories that this user has seen
"""

from .book import Ledger as Ledger
from .record import KINDS as KINDS
from .record import Record as Record
