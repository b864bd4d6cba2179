"""Witnesses: somebody else than the board signs that they saw its ledger at a size, and no other history can be shown
to those who trust them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from ...core.errors import BadData, FarshiftError
from ...core.files import write_atomically
from ...core.listings.plural import counted
from ..board import Board
from ..ledger import Record
from ..ledger.chain import chain_problems
from ..ledger.checkpoint import (
    COSIGNATURE,
    Checkpoint,
    Witnessed,
    checkpoint_of,
    cosigned,
    moment_of,
    not_extended,
    read_checkpoint,
    signed,
    signed_with,
    verifier_key,
)
from ..ledger.heads import unlike_seen
from ..ledger.keys import create_key
from ..storage.readers import BoardReader

NAME = "witness"


def checkpoint(board: Board) -> Checkpoint:
    """The checkpoint of a board's ledger, signed with the board's key."""
    return signed(checkpoint_of(board.settled(), board.ledger.key), board.ledger.signer())


def witness(board: Board | BoardReader, key: Path, out: Path, name: str = NAME) -> tuple[Checkpoint, str]:
    """Look at a board and sign its checkpoint with the key in a file, which is made where there is none. `out` is
    written, and must, where it exists, be an earlier checkpoint that the ledger extends. Returns the checkpoint, and
    the key as others are told it."""
    copy_key, records, problems = _history(board)
    problems += chain_problems(records, copy_key)
    problems = problems or unlike_seen(records, copy_key)
    if out.exists():
        problems = problems or not_extended(
            records, copy_key, Witnessed(str(out), read_checkpoint(_content(out), str(out)))
        )
    if problems:
        raise FarshiftError(f"not signed: {problems[0]}")
    signing = create_key(key)
    made = cosigned(checkpoint_of(records, copy_key), signing, name, int(time.time()))
    write_atomically(out, made.note().encode(), "write it to another place")
    return made, verifier_key(name, COSIGNATURE, signing.public)


def _history(board: Board | BoardReader) -> tuple[str, list[Record], list[str]]:
    if isinstance(board, Board):
        return board.ledger.key, board.ledger.store.records(), []
    records, unread = board.read()
    return str(board.card.get("key")), records, unread


def witnessed_by(files: Sequence[Path], keys: Sequence[str]) -> tuple[list[Witnessed], list[str]]:
    """The checkpoints in files; and remarks. Where keys are given, each must have
    signed one of them, and every file must be signed by one: `BadData` otherwise."""
    found = [(str(file), read_checkpoint(_content(file), str(file))) for file in files]
    remarks: list[str] = []
    signers: set[str] = set()
    witnessed = []
    for where, checkpoint in found:
        known = {key: made for key in keys if (made := signed_with(checkpoint, key)) is not None}
        if keys and not known:
            raise BadData(
                f"{where} is not signed with a key that was given: take the checkpoint from its witness again"
            )
        signers |= set(known)
        times = [made.time for made in known.values() if made.time is not None]
        witnessed.append(Witnessed(where, checkpoint, min(times, default=None)))
        for made in known.values():
            when = f" at {moment_of(made.time)}" if made.time is not None else ""
            remarks.append(f"{where}: {made.name} saw {counted(checkpoint.size, 'record')}{when}")
        if not keys:
            size = counted(checkpoint.size, "record")
            remarks.append(f"{where}: of {size}; its signatures are not checked without --witness-key")
    if missing := [key for key in keys if key not in signers]:
        raise BadData(f"no checkpoint is signed with {missing[0][:120]}: name its file (--witness)")
    return witnessed, remarks


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise FarshiftError(f"{file}, a checkpoint, cannot be read: {error.strerror}") from error
