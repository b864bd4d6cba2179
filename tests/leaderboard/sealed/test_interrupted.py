"""Sealing, closing, handing in and exporting may be interrupted at any step: the next call carries them on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from farshift.leaderboard import board as entering
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations import export as exporting
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.verify import verify_at, verify_board
from farshift.leaderboard.sealed import seal as sealing
from farshift.leaderboard.sealed.seal import close_window, get_seed_path
from farshift.leaderboard.sealed.submit import submit_answers
from farshift.leaderboard.sealed.window import read_windows
from sealed_cases import CLOSES, WINDOW, kinds, sealed

pytestmark = pytest.mark.usefixtures("decoded_once")


class Killed(BaseException):
    """What a test ends a process with."""


@pytest.fixture
def lives(tmp_path, monkeypatch):
    """Copies of a board after some work on each was cut off before or after the first, second, .. thing that it does
    on the disk. The last copy's work was not cut off."""

    def live(base: Path, work: Callable[[Board], object], *places: tuple[object, str]) -> Iterator[tuple[Board, bool]]:
        for step in range(40):
            built = Board(shutil.copytree(base, tmp_path / f"life-{step}"))
            monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / f"home-{step}"))  # it remembers what it saw of a board
            events = iter(range(40))

            def wrap(function, step=step, events=events):
                def call(*arguments, **options):
                    for place in ("before", "after"):
                        if place == "after":
                            result = function(*arguments, **options)
                        if next(events) == step:
                            raise Killed
                    return result

                return call

            cut = False
            with pytest.MonkeyPatch.context() as patch:
                for owner, name in [*places, (built.ledger, "append")]:
                    patch.setattr(owner, name, wrap(getattr(owner, name)))
                try:
                    work(built)
                except Killed:
                    cut = True
            yield Board(built.path), cut
            if not cut:
                assert step >= 4
                return
        raise AssertionError("it never ends")

    return live


def test_sealing_that_is_cut_off_anywhere_leaves_a_window_or_nothing_and_can_be_repeated(coins, clock, tmp_path, lives):
    empty = Board.init(tmp_path / "empty", "B").path
    for after, _ in lives(empty, lambda board: sealed(board, clock), (sealing, "write_private")):
        seed = get_seed_path(after, WINDOW)
        if "window_opened" not in kinds(after):
            sealed(after, clock, bytes(32))
        window = read_windows(after.ledger.records())[WINDOW]
        assert kinds(after) == ["opened", "window_opened"]
        assert window.terms.commitment(bytes.fromhex(seed.read_text())) == window.commitment
        assert verify_board(after).differences == []


def test_a_close_that_is_cut_off_anywhere_is_carried_on(opened, handed, clock, lives):
    submit_answers(opened, WINDOW, handed.answers["ann"], clock=clock)
    clock.set(CLOSES)
    for after, cut in lives(opened.path, lambda board: close_window(board, WINDOW, clock), (sealing, "score_answers")):
        if cut:
            close_window(after, WINDOW, clock)
        assert kinds(after)[2:] == ["submitted", "scored", "seed_revealed"]
        assert verify_board(after).differences == []


def test_answers_whose_entering_is_cut_off_anywhere_are_in_whole_or_not_at_all(opened, handed, clock, lives):
    def submit(board: Board):
        return submit_answers(board, WINDOW, handed.answers["ann"], clock=clock)

    for after, cut in lives(opened.path, submit, (entering, "publish_files")):
        entered = "submitted" in kinds(after)
        assert entered or cut
        assert verify_board(after).differences == []
        assert submit(after)[1] is not entered
        assert kinds(after)[2:] == ["submitted"]
        assert verify_board(after).differences == []


def test_an_export_that_is_cut_off_anywhere_is_carried_on(revealed, tmp_path, lives):
    for after, _ in lives(
        revealed.path, lambda board: export_board(board, board.path / "out"), (exporting, "write_atomically")
    ):
        export_board(after, after.path / "out")
        copy = verify_at(str(after.path / "out"))
        assert copy.differences == [] == copy.not_recomputed
        assert verify_board(after).differences == []
