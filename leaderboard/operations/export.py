"""An export of a board: everything that is needed to verify it, and none of its secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from ...core.errors import FarshiftError
from ...core.files import file_sha256, lock_elsewhere, locked, write_atomically
from ...core.plugins import read_toml
from ...core.progress import advance
from ..sealed.times import Clock, stamp, utc_now
from ..storage.board_files import files_in, held_back, named_files
from ..storage.readers import CARD, LEDGER

if TYPE_CHECKING:
    from ..board import Board
    from ..board_view import BoardView

PUBLIC = ("format", "name", "opened", "key")
"""What of board.toml others see, beside the models that its tables are compared with."""


@dataclass(frozen=True)
class Export:
    """What was written: records, files (of which `new` were not there before), and the hash of the last record."""

    out: Path
    records: int
    files: int
    new: int
    head: str


def export(board: Board, out: Path | str, clock: Clock = utc_now) -> Export:
    """Write `board.toml`, `ledger.jsonl` and every file that its records name and that is public by now into `out`. An
    older export of the same board is brought up to date; what is there already is not written again. The ledger comes
    last, so that an export that is being written never names what is not there yet."""
    out = Path(out)
    records = board.settled()
    card = public_card(board)
    named, hidden = named_files(records), held_back(records, stamp(clock()))
    shown = {path: digest for path, digest in named.items() if path not in hidden}
    with locked(lock_elsewhere(out), str(out)):
        _refuse_others(out, card, named)
        new = 0
        for number, (path, digest) in enumerate(sorted(shown.items())):
            new += _copy(board, path, digest, out / path)
            advance("exporting", number + 1, len(shown))
        write_atomically(out / LEDGER, b"".join(record.line() + b"\n" for record in records), _ADVICE)
        write_atomically(out / CARD, tomli_w.dumps(card).encode(), _ADVICE)
    return Export(out, len(records), len(shown), new, records[-1].hash)


def public_card(board: BoardView) -> dict[str, object]:
    """What an export's board.toml says."""
    card = {name: board.card[name] for name in PUBLIC}
    if baselines := board.baselines():
        card["baselines"] = dict(sorted(baselines.items()))
    return card


_ADVICE = "export to another disk"


def _refuse_others(out: Path, card: dict[str, object], named: dict[str, str]) -> None:
    """Refuse a folder that holds anything but an older export of this board."""
    if not out.exists():
        return
    if not out.is_dir():
        raise FarshiftError(f"{out} is a file: choose a folder")
    there = {item.name for item in out.iterdir() if not item.name.startswith(".")}
    folders = {path.split("/")[0] for path in named}
    foreign = there - folders - {CARD, LEDGER, "site"}
    if (out / CARD).exists() and read_toml(out / CARD).get("key") != card["key"]:
        foreign.add(CARD)
    foreign |= {path for path in files_in(out, folders) if path not in named}
    if foreign:
        raise FarshiftError(f"{out} holds something else than an export of this board ({min(foreign)}): choose another")


def _copy(board: Board, path: str, digest: str, target: Path) -> bool:
    if target.is_file() and file_sha256(target) == digest:
        return False
    source = board.file(path)
    if source is None or file_sha256(source) != digest:
        raise FarshiftError(f"{board.path / path} is missing or was changed: see farshift board verify {board.path}")
    write_atomically(target, source.read_bytes(), _ADVICE)
    return True
