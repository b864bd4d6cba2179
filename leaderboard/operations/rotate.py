"""Key rotation of a board: the old key signs a record that names the new key, which signs every later record.

The new key is written beside the old one before the record is appended, and replaces it afterwards: if the process is
killed in between, the next `rotate_key` finishes the rotation.
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
    """Give a board a new key, with a reason in the ledger. Returns the record, and the path of the old key, which signs
    no more records."""
    if not reason.strip():
        raise FarshiftError("a key rotation needs a reason: give it with --reason")
    path = get_key_path(board.path)
    with board.locked():
        following = create_key(path.with_name(f"{path.name}.next"))
        if board.ledger.current() == following.public:  # the record was appended before the process was killed
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
