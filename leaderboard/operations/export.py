"""An export of a board: everything needed to verify it, without its secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from ...core.documents import read_toml
from ...core.errors import FarshiftError
from ...core.files import compute_file_sha256, get_lock_path, hold_lock, write_atomically
from ...core.progress import report_progress
from ..storage.board_files import list_files, list_named_files, list_public_files
from ..storage.readers import CARD, LEDGER

if TYPE_CHECKING:
    from ..board import Board
    from ..board_view import BoardView

PUBLIC = ("format", "name", "opened", "key")
"""The keys of board.toml that are public. Settings on which its tables depend are added to them."""


@dataclass(frozen=True)
class ExportReport:
    """What was written: records, files (`new`: those that did not exist before), and the hash of the last record."""

    out: Path
    records: int
    files: int
    new: int
    head: str


def export_board(board: Board, out: Path | str) -> ExportReport:
    """Write `board.toml`, `ledger.jsonl` and every public file that the records name to `out`. An older export of the
    same board is updated; existing files are not written again. The ledger is written last, so that an incomplete
    export never names files that do not exist yet."""
    out = Path(out)
    records = board.committed_records()
    card = make_public_card(board)
    named, public_files = list_named_files(records), list_public_files(records)
    with hold_lock(get_lock_path(out), str(out)):
        _refuse_others(out, card, named)
        new = 0
        for number, (path, digest) in enumerate(sorted(public_files.items())):
            if not (out / path).is_file() or compute_file_sha256(out / path) != digest:
                write_atomically(out / path, board.read_file(path, digest), _ADVICE)
                new += 1
            report_progress("exporting", number + 1, len(public_files))
        write_atomically(out / LEDGER, b"".join(record.line() + b"\n" for record in records), _ADVICE)
        write_atomically(out / CARD, tomli_w.dumps(card).encode(), _ADVICE)
    return ExportReport(out, len(records), len(public_files), new, records[-1].hash)


def make_public_card(board: BoardView) -> dict[str, object]:
    """The content of an export's board.toml."""
    card = {name: board.card[name] for name in PUBLIC}
    if board.is_open():
        card["open"] = True
    if baselines := board.baselines():
        card["baselines"] = dict(sorted(baselines.items()))
    return card


_ADVICE = "export to another disk"


def _refuse_others(out: Path, card: dict[str, object], named: dict[str, str]) -> None:
    """Refuse a folder that contains anything but an older export of this board."""
    if not out.exists():
        return
    if not out.is_dir():
        raise FarshiftError(f"{out} is a file: choose a folder")
    present = {item.name for item in out.iterdir() if not item.name.startswith(".")}
    folders = {path.split("/")[0] for path in named}
    foreign = present - folders - {CARD, LEDGER, "site"}
    if (out / CARD).exists() and read_toml(out / CARD).get("key") != card["key"]:
        foreign.add(CARD)
    foreign |= {path for path in list_files(out, folders) if path not in named}
    if foreign:
        raise FarshiftError(f"{out} contains other files than an export of this board ({min(foreign)}): choose another")
