"""Receipts for submissions to a window: the ledger's record of the submission, signed by the board.

A receipt needs no further signature: the record has the window, the digest of the submission, the team's public key,
the time and its place in the chain, and the board's signature over all of it. So a receipt together with a ledger that
lacks that record prove, by the board's own key, that the board dropped or replaced the submission.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.canonical import to_canonical_json
from ...core.errors import BadData, FarshiftError
from ...core.files import write_atomically
from ..ledger.keys import is_signed_by
from ..ledger.record import Record, find_chain_problems, find_current_key, read_line
from .window import parse_time

FORMAT = 1
MAX_FILE = 1 << 20


@dataclass(frozen=True)
class Receipt:
    """A receipt. board: the board's first public key; answers_record: the record of the submission; new: whether it was
    accepted just now, or already before; rotations: the records before it that name another key of the board."""

    board: str
    answers_record: Record
    new: bool = False
    rotations: tuple[Record, ...] = ()

    @property
    def window(self) -> str:
        return str(self.answers_record.body["window"])

    @property
    def team(self) -> str:
        return str(self.answers_record.body["team"])

    @property
    def submission(self) -> str:
        """sha256 of the submission's file."""
        return str(self.answers_record.body["submission"])

    @property
    def seq(self) -> int:
        return self.answers_record.seq

    @property
    def time(self) -> str:
        return self.answers_record.time

    @property
    def received(self) -> str:
        """When the board received the submission, possibly before it was checked and recorded."""
        return str(self.answers_record.body.get("received", self.time))

    def record(self) -> dict[str, Any]:
        """Return the receipt's JSON: the main values by name, and the signed record."""
        body = self.answers_record.body
        summary = {"window": self.window, "team": self.team, "signed_by": body.get("signed_by", "")}
        summary |= {"submission": self.submission, "seq": self.seq, "time": self.time, "hash": self.answers_record.hash}
        keys = {"rotations": [json.loads(rotation.line()) for rotation in self.rotations]} if self.rotations else {}
        return {
            "format": FORMAT,
            "board": self.board,
            **summary,
            "record": json.loads(self.answers_record.line()),
            **keys,
        }

    def write(self, file: Path) -> None:
        write_atomically(file, json.dumps(self.record(), indent=1, ensure_ascii=False).encode() + b"\n")


def read_receipt(file: Path | str) -> Receipt:
    """Read a receipt and check its record's hash and the signature of the board that it names. Raises `BadData` for an
    invalid receipt."""
    path = Path(file)
    content = path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_FILE else b""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadData(f"{path} is not a receipt for a submission to a window") from error
    return parse_receipt(data, str(path))


def parse_receipt(data: Any, where: str) -> Receipt:
    """Parse a receipt that was read from a file or sent by a board, as `read_receipt` does. where: its name in
    messages."""
    try:
        rotations = tuple(read_line(to_canonical_json(rotation)) for rotation in data.get("rotations", []))
        receipt = Receipt(str(data["board"]), read_line(to_canonical_json(data["record"])), rotations=rotations)
        fits = receipt.record() == data and receipt.answers_record.kind == "submitted"
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadData(f"{where} is not a receipt for a submission to a window") from error
    if not fits or not receipt.answers_record.fits():
        raise BadData(f"{where} was changed: its values differ from its record's")
    if not is_signed_by(
        find_current_key(receipt.rotations, receipt.board),
        receipt.answers_record.hash,
        receipt.answers_record.signature,
    ):
        raise BadData(f"{where} is not signed by the board with the key {receipt.board[:64]}")
    return receipt


def find_receipt_problems(receipt: Receipt, records: Sequence[Record], key: str) -> list[str]:
    """How a board's ledger contradicts a receipt of that board; empty if it does not. Raises `FarshiftError` if nothing
    can be concluded: the receipt is another board's, or this copy of the ledger is older or not signed by the board."""
    if key != receipt.board:
        raise FarshiftError(f"the receipt is from the board with the key {receipt.board}, this one has the key {key}")
    if wrong := find_chain_problems(records, key):
        raise FarshiftError(f"this copy of the ledger has invalid records: {wrong[0]}")
    records_by_seq = {record.seq: record for record in records}
    ledger_record = records_by_seq.get(receipt.seq)
    if ledger_record is None:
        newest = max(records, key=lambda record: record.seq, default=None)
        if newest is None or (newest.seq < receipt.seq and parse_time(newest.time) <= parse_time(receipt.time)):
            raise FarshiftError(
                f"this copy of the ledger ends before record {receipt.seq}, the receipt's record: get a newer copy"
            )
        return [f"record {receipt.seq} is missing in the ledger, which has records after {receipt.time}"]
    if ledger_record != receipt.answers_record:
        return [f"record {receipt.seq} differs from the receipt's ({ledger_record.kind} at {ledger_record.time})"]
    scored = any(record.kind == "scored" and record.body.get("submission") == receipt.submission for record in records)
    revealed = any(record.kind == "seed_revealed" and record.body.get("window") == receipt.window for record in records)
    return ["the window was revealed, but the submission was never scored"] if revealed and not scored else []
