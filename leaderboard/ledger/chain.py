"""Checks of a chain of records: every broken link, with its position."""

from __future__ import annotations

from collections.abc import Sequence

from .record import GENESIS, HISTORY, KINDS, Record
from .rotation import find_unsigned


def find_chain_problems(records: Sequence[Record], key: str, head: str | None = None) -> list[str]:
    """List all problems of a ledger's records, in order; empty if there are none.

    key: the board's first public key, hexadecimal. head: a record's hash known from an earlier check. Without it a
    removal of the last records cannot be detected, because the rest is still a valid chain.
    """
    problems = find_link_problems(records) + _find_signature_problems(records, key)
    if head is not None and all(record.hash != head for record in records):
        problems.append(f"no record has the given hash {head}: records were removed or rewritten")
    return problems


def find_link_problems(records: Sequence[Record]) -> list[str]:
    """List the problems of the chain itself, without signatures."""
    problems = []
    if not records or records[0].kind != "opened" or records[0].seq:
        problems.append("the ledger does not begin with the board's opening: records were removed")
    return problems + _find_broken_links(records, 0, GENESIS)


def find_continuation_problems(last: Record, records: Sequence[Record]) -> list[str]:
    """List the problems of the chain of records that follow the record `last`, without signatures."""
    return _find_broken_links(records, last.seq + 1, last.hash)


def _find_broken_links(records: Sequence[Record], due: int, previous: str) -> list[str]:
    problems, begun = [], due
    for number, record in enumerate(records, begun):
        if record.seq > due:
            problems.append(f"{_format_span(due, record.seq - 1)} missing before record {record.seq}")
        elif record.seq < due:
            problems.append(f"record {record.seq} comes after record {due - 1}: records were reordered or repeated")
        elif record.previous != previous:
            problems.append(f"record {record.seq} does not have the hash of the record before it")
        if not record.fits():
            problems.append(f"record {record.seq} ({record.kind}) was changed: its hash does not match")
        if record.kind not in (*KINDS, *HISTORY):
            problems.append(f"record {record.seq} has the unknown kind {record.kind!r}")
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
