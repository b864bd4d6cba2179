"""Sealing and closing may be interrupted at any step: the next call carries them on."""

from __future__ import annotations

import shutil

import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed import seal as closing
from farshift.leaderboard.sealed import seal as sealing
from farshift.leaderboard.sealed.seal import close_window, get_seed_path
from farshift.leaderboard.sealed.submit import submit_answers
from farshift.leaderboard.sealed.window import read_windows
from sealed_cases import CLOSES, WINDOW, kinds, sealed

pytestmark = pytest.mark.usefixtures("decoded_once")


class Killed(BaseException):
    """What a test ends a process with."""


def interrupted(monkeypatch, step: int, places) -> None:
    """Die before or after the step-th thing that goes to the disk: even numbers before it, odd ones after it."""
    count = 0

    def wrap(function):
        def call(*arguments, **options):
            nonlocal count
            own, count = count, count + 1
            if 2 * own == step:
                raise Killed
            done = function(*arguments, **options)
            if 2 * own + 1 == step:
                raise Killed
            return done

        return call

    for owner, name in places:
        monkeypatch.setattr(owner, name, wrap(getattr(owner, name)))


def test_sealing_that_is_cut_off_anywhere_is_carried_on_with_its_own_seed(coins, clock, tmp_path, monkeypatch):
    empty = Board.init(tmp_path / "empty", "B").path
    finished = False
    for step in range(20):
        built = Board(shutil.copytree(empty, tmp_path / str(step)))
        monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / f"home-{step}"))  # which remembers what it saw of a board
        with pytest.MonkeyPatch.context() as patch:
            places = [(sealing, "write_private"), (built.ledger, "append"), (built.ledger.store, "append")]
            interrupted(patch, step, places)
            try:
                sealed(built, clock)
                finished = True
            except Killed:
                pass
        after = Board(tmp_path / str(step))
        committed = [record.body["commitment"] for record in after.ledger.records() if record.kind == "seed_committed"]
        seed = get_seed_path(after, WINDOW)
        begun = seed.read_text() if seed.exists() else None
        window = (
            sealed(after, clock, bytes(32))
            if "window_opened" not in kinds(after)
            else read_windows(after.ledger.records())[WINDOW]
        )
        assert kinds(after) == ["opened", "seed_committed", "window_opened"], step
        assert window.terms.commitment(bytes.fromhex(seed.read_text())) == window.commitment
        assert begun in (None, seed.read_text())
        assert not committed or committed == [window.commitment]
        assert verify_board(after).differences == []
        if finished:
            break
    assert finished and step >= 8


def test_a_close_that_is_cut_off_anywhere_is_carried_on(opened, handed, clock, tmp_path):
    submit_answers(opened, WINDOW, handed.answers["ann"], clock=clock)
    clock.set(CLOSES)
    finished = False
    for step in range(20):
        shutil.copytree(opened.path, tmp_path / f"copy-{step}")
        built = Board(tmp_path / f"copy-{step}")
        with pytest.MonkeyPatch.context() as patch:
            interrupted(
                patch, step, [(built.ledger, "append"), (built.ledger.store, "append"), (closing, "score_answers")]
            )
            try:
                close_window(built, WINDOW, clock)
                finished = True
            except Killed:
                pass
        after = Board(tmp_path / f"copy-{step}")
        if not finished:
            close_window(after, WINDOW, clock)
        assert kinds(after)[3:] == ["submitted", "window_closed", "scored", "seed_revealed"], step
        assert verify_board(after).differences == []
        if finished:
            break
    assert finished and step >= 6
