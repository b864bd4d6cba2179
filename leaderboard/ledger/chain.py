"""What is wrong with a chain of records: every broken link, and where it is."""

from __future__ import annotations

from collections.abc import Sequence

from .record import GENESIS, HISTORY, KINDS, Record
from .rotation import find_unsigned


def find_chain_problems(records: Sequence[Record], key: str, head: str | None = None) -> list[str]:
    """Everything wrong with a ledger's records, in order; empty where nothing is.

    key: the board's first public key, hexadecimal. head: a record's hash known from an earlier look. Without it nobody
    can tell that the last records were cut off: what is left of a chain is a chain.
    """
    problems = find_link_problems(records) + _find_signature_problems(records, key)
    if head is not None and all(record.hash != head for record in records):
        problems.append(f"no record has the hash {head} that was given: records were cut off or rewritten")
    return problems


def find_link_problems(records: Sequence[Record]) -> list[str]:
    """What is wrong with the chain itself, signatures aside."""
    problems = []
    if not records or records[0].kind != "opened" or records[0].seq:
        problems.append("the ledger does not begin with the board's opening: records were removed")
    return problems + _find_broken_links(records, 0, GENESIS)


def find_continuation_problems(last: Record, records: Sequence[Record]) -> list[str]:
    """What is wrong with the chain of records that are to follow the `last` one, signatures aside."""
    return _find_broken_links(records, last.seq + 1, last.hash)


def _find_broken_links(records: Sequence[Record], due: int, previous: str) -> list[str]:
    problems, begun = [], due
    for number, record in enumerate(records, begun):
        if record.seq > due:
            problems.append(f"{_format_span(due, record.seq - 1)} missing before record {record.seq}")
        elif record.seq < due:
            problems.append(f"record {record.seq} stands after record {due - 1}: records were reordered or repeated")
        elif record.previous != previous:
            problems.append(f"record {record.seq} does not follow from the one before it")
        if not record.fits():
            problems.append(f"record {record.seq} ({record.kind}) was changed: its hash does not fit")
        if record.kind not in (*KINDS, *HISTORY):
            problems.append(f"record {record.seq} is of the unknown kind {record.kind!r}")
        elif record.kind == "opened" and number:
            problems.append(f"record {record.seq} opens the board again")
        due, previous = record.seq + 1, record.hash
    return problems


def _format_span(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first} to {last} are"


def _find_signature_problems(records: Sequence[Record], key: str) -> list[str]:
    wrong = find_unsigned(records, key)
    if len(wrong) == len(records) > 1:
        return [f"no record is signed by the board's key {key}"]
    return [f"record {seq} is not signed by the board's key" for seq in wrong]
