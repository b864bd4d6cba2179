"""Copy the draw of an open window from the board for participants."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ...core.files import write_atomically
from .draw_folder import CARD, INPUTS
from .times import Clock, get_utc_time
from .window import WindowPaths, find_window

if TYPE_CHECKING:
    from ..board_view import BoardView


def export_draw(board: BoardView, window: str, out: Path | str, clock: Clock = get_utc_time) -> Path:
    """Copy a draw from a board, or a copy of one, to the folder `out`. Raises `FarshiftError` before the window opens,
    if `out` contains other files, or if the draw does not match the ledger."""
    sealed_window = find_window(board.committed_records(), window)
    state = sealed_window.state(clock())
    if sealed_window.opened is None or state in ("committed", "announced"):
        raise FarshiftError(
            f"window {sealed_window.name} is {state}: its draw is published from {sealed_window.terms.opens}"
        )
    out = Path(out)
    if out.exists() and (not out.is_dir() or {path.name for path in out.iterdir()} - {CARD, INPUTS}):
        raise FarshiftError(f"{out} contains other files: choose another folder")
    paths = WindowPaths(sealed_window.name)
    for name, path in ((INPUTS, paths.inputs), (CARD, paths.card)):
        file = board.file(path)
        content = file.read_bytes() if file is not None else b""
        if sha256(content).hexdigest() != sealed_window.opened["files"][path]:
            raise FarshiftError(
                f"{board.location}: {path} is missing or was changed: run farshift board verify {board.location}"
            )
        write_atomically(out / name, content)
    return out
