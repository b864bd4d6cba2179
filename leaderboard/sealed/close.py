"""Closing a window: every submission is scored and the seed is revealed.

Scores and seed are appended to the ledger together, so a process that is killed leaves a window that is closed but not
revealed, and `close_window` can be run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.canonical import to_canonical_json
from ...core.errors import FarshiftError
from ...core.progress import report_progress
from ..storage.board_files import compute_digests
from .answers import check_answers, read_window_draw
from .benchmark import make_sealed_benchmark
from .draw_folder import find_window_benchmark
from .drawing import draw_sealed_rows
from .scoring import compute_predictions_digest, score_answers
from .seal import read_secret_seed
from .times import Clock, get_utc_time
from .window import Window, WindowPaths, find_window, read_windows

if TYPE_CHECKING:
    from ..board import Board


def close_window(board: Board, window: str, clock: Clock = get_utc_time) -> Window:
    """Close a window after its closing time: accept no more submissions, score the existing ones, reveal the seed.
    Closing it again changes nothing. Raises `FarshiftError` before the closing time."""
    with board.locked():
        sealed_window = find_window(board.ledger.records(), window)
        state = sealed_window.state(clock())
        if state == "revealed":
            return sealed_window
        if state != "due":
            raise FarshiftError(
                f"window {sealed_window.name} closes at {sealed_window.terms.closes}: it is {state} now"
            )
        if sealed_window.closed is None:
            board.ledger.append([("window_closed", {"window": sealed_window.name})])
        _reveal_seed(board, sealed_window)
        return read_windows(board.ledger.records())[sealed_window.name]


def _reveal_seed(board: Board, window: Window) -> None:
    secret = read_secret_seed(board, window.name)
    if window.terms.commitment(secret) != window.commitment:
        raise FarshiftError(f"the seed of window {window.name} does not match the commitment: restore it")
    public = find_window_benchmark(window.terms)
    paths = WindowPaths(window.name)
    published_draw = read_window_draw(board, window.name)
    sealed = make_sealed_benchmark(public, published_draw, draw_sealed_rows(public, window.derive_draw_seed(secret)))
    events: list[tuple[str, dict[str, Any]]] = []
    files: dict[str, bytes] = {}
    for number, (digest, body) in enumerate(window.answers.items()):
        file = board.file(paths.answers(digest)) or board.path / paths.answers(digest)
        _, entry = check_answers(file, sealed)
        score_files = {paths.score(digest): to_canonical_json(score_answers(sealed, entry))}
        score_record = {name: body[name] for name in ("window", "submission", "team", "model")}
        score_record["predictions"] = compute_predictions_digest(entry)
        events.append(("scored", score_record | {"files": compute_digests(score_files)}))
        files |= score_files
        report_progress("scoring", number + 1, len(window.answers))
    board.enter([*events, ("seed_revealed", {"window": window.name, "seed": secret.hex()})], files)
