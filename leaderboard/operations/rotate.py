"""A new key for a board: the old one signs a record that names the new, which signs everything after it.

The new key is written beside the old before the record is appended, and takes its place after: a process that is killed
in between leaves a board that the next `rotate_key` finishes.
"""

from __future__ import annotations

from pathlib import Path

from ...core.durable import ADVICE, fsync_folder
from ...core.errors import FarshiftError
from ...core.files import translate_os_errors
from ..board import Board, get_key_path
from ..ledger import Record
from ..ledger.keys import create_key
from ..ledger.rotation import KIND


def rotate_key(board: Board, reason: str) -> tuple[Record, Path]:
    """Give a board a new key, with the reason on record. Returns the record, and where the old key lies now: it signs
    nothing more."""
    if not reason.strip():
        raise FarshiftError("a rotation of the key needs a reason: --reason says it")
    path = get_key_path(board.path)
    with board.locked():
        following = create_key(path.with_name(f"{path.name}.next"))
        if board.ledger.current() == following.public:  # the record was appended, and the process killed
            record = board.ledger.store.of_kind(KIND)[-1]
        else:
            (record,) = board.enter([(KIND, {"key": following.public, "reason": reason.strip()})], {})
        old = path.with_name(f"{path.stem}-until-{record.seq}{path.suffix}")
        with translate_os_errors(path, ADVICE):
            if path.exists():
                path.replace(old)
            following.path.replace(path)
            fsync_folder(path.parent)
    return record, old
