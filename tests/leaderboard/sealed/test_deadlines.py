"""A board that does not keep to the times that it announced of a window is found, by the ledger's times or the clock."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farshift import FarshiftError
from farshift.leaderboard.sealed.seal import close_window, seal_benchmark
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.sealed.window import read_windows
from sealed_cases import CLOSES, ON, OPENS, SEED, WINDOW, Clock
from test_window_verify import list_folder

pytestmark = pytest.mark.usefixtures("decoded_once")

REVEALS = "2031-01-15T00:00:00Z"
"""Seven days after the close."""


def at(board, **times):
    """The board's records, those of a kind at another time."""
    return [replace(record, time=times.get(record.kind, record.time)) for record in board.ledger.records()]


def problems(board, records=None, clock=CLOSES):
    return verify_sealed(list_folder(board.path), records or board.ledger.records(), Clock(clock))[0]


def test_a_board_that_keeps_to_its_times_is_right(revealed):
    assert read_windows(revealed.ledger.records())[WINDOW].terms.reveals == REVEALS
    assert problems(revealed, clock="2040-01-01T00:00:00Z") == []


@pytest.mark.attack("operator", "a window closed early")
def test_a_window_that_was_closed_early_is_found(revealed):
    """An operator who closes once a friend has answered, and nobody else can."""
    early = at(revealed, window_closed="2031-01-07T23:59:59Z", scored=CLOSES, seed_revealed=CLOSES)
    assert problems(revealed, early) == [
        f"window {WINDOW}: was closed at 2031-01-07T23:59:59Z, before its closing time ({CLOSES})"
    ]


@pytest.mark.attack("operator", "a seed revealed while answers are accepted")
def test_a_seed_that_was_revealed_early_is_found(revealed):
    """An operator who lets a friend see the seed while answers are taken."""
    time = "2031-01-05T00:00:00Z"
    result = problems(revealed, at(revealed, window_closed=time, scored=time, seed_revealed=time))
    for what in ("closed", "scored", "revealed"):
        assert any(f"was {what} at {time}" in line for line in result)


@pytest.mark.attack("operator", "answers accepted before a window opens or after it closes")
@pytest.mark.parametrize("time", ["2030-12-31T23:59:59Z", "2031-01-08T00:01:00Z"])
def test_answers_before_the_opening_or_after_the_close_are_found(revealed, time):
    result = problems(revealed, at(revealed, submitted=time, window_opened="2031-01-01T00:00:00Z"))
    assert len([line for line in result if "outside the window" in line]) == 3


@pytest.mark.attack("operator", "a late reveal")
def test_a_reveal_past_its_deadline_is_found(revealed):
    on_time = at(revealed, seed_revealed="2031-01-15T00:01:00Z")
    assert problems(revealed, on_time) == []
    (result,) = problems(revealed, at(revealed, seed_revealed="2031-01-15T00:01:01Z"))
    assert f"revealed at 2031-01-15T00:01:01Z (due by {REVEALS})" in result


@pytest.mark.attack("operator", "a window that is never closed")
def test_a_window_that_is_never_closed_is_found_by_the_clock(opened):
    """An operator who does not like the results."""
    assert problems(opened, clock=CLOSES) == []
    assert problems(opened, clock="2031-01-15T00:01:00Z") == []
    (result,) = problems(opened, clock="2031-01-15T00:01:01Z")
    assert f"was never closed and its seed revealed (due by {REVEALS})" in result


@pytest.mark.attack("operator", "a window that is never closed, for a verifier whose clock is wrong")
def test_a_window_that_is_never_closed_is_found_by_later_records(opened, clock):
    """A verifier's clock may be wrong: the board itself went on after the deadline."""
    clock.set("2031-02-01T00:00:00Z")
    opened.ledger.append([("withdrawn", {"entry": "x", "reason": "y"})])
    assert any("was never closed" in line for line in problems(opened, clock="2030-01-01T00:00:00Z"))


@pytest.mark.attack("operator", "a window closed and never revealed")
def test_a_window_that_was_closed_and_never_revealed_is_found(revealed):
    stored = [record for record in revealed.ledger.records() if record.kind not in ("scored", "seed_revealed")]
    result = problems(revealed, stored, clock="2031-02-01T00:00:00Z")
    assert any("its seed revealed (due by" in line for line in result)


def test_times_that_are_none_are_named(revealed):
    (result,) = problems(revealed, at(revealed, window_closed="soon"))
    assert "'soon' is not a time" in result


def test_a_board_closes_a_late_window_all_the_same(opened, clock):
    clock.set("2031-03-01T00:00:00Z")
    close_window(opened, WINDOW, clock)
    (result,) = problems(opened)
    assert "(due by" in result


def test_a_deadline_of_the_reveal_is_announced_and_bound_by_the_commitment(board, clock):
    terms = read_windows(board.ledger.records())[WINDOW].terms
    assert terms.record()["reveals"] == REVEALS
    assert replace(terms, reveals="2032-01-01T00:00:00Z").commitment(SEED) != terms.commitment(SEED)
    with pytest.raises(FarshiftError, match="before it closes"):
        seal_benchmark(board, ON, CLOSES, clock, reveals=OPENS)
