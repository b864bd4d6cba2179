"""Windows: their records and terms; and deadlines that a board keeps, or is found not to have kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farshift import FarshiftError
from farshift.core.errors import BadSubmission
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed.results import make_window_results
from farshift.leaderboard.sealed.seal import close_window, get_seed_path, seal_benchmark
from farshift.leaderboard.sealed.submit import submit_answers
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.sealed.window import parse_time, read_windows
from sealed_cases import CLOSES, ON, OPENS, SEED, WINDOW, Clock, kinds, sealed
from test_window_verify import list_folder

pytestmark = pytest.mark.usefixtures("decoded_once")


def test_the_commitment_comes_before_the_window_and_binds_seed_and_terms(board):
    assert kinds(board) == ["opened", "window_opened"]
    window = read_windows(board.ledger.records())[WINDOW]
    assert window.terms.commitment(SEED) == window.commitment
    assert window.terms.commitment(bytes(32)) != window.commitment
    for name in ("window", "benchmark", "manifest", "closes", "reveals"):
        assert replace(window.terms, **{name: "other"}).commitment(SEED) != window.commitment


@pytest.mark.parametrize(("closes", "why"), [("2030-12-31", "is in the past"), ("2031-13-01", "is not a time")])
def test_times_that_make_no_window_are_refused(board, clock, closes, why):
    with pytest.raises(FarshiftError, match=why):
        seal_benchmark(board, ON, closes, clock)
    assert kinds(board) == ["opened", "window_opened"]


def test_times_are_utc_whatever_zone_they_are_written_in():
    assert parse_time("2031-01-01T02:00:00+02:00") == parse_time("2031-01-01") == parse_time("2031-01-01T00:00:00Z")


def test_windows_of_one_benchmark_are_numbered(board, clock):
    assert sealed(board, clock, bytes(32)).name == "coins__longer-2"
    assert list(read_windows(board.ledger.records())) == [WINDOW, "coins__longer-2"]


def test_answers_are_taken_while_the_window_is_open_only(board, handed, clock):
    file = handed.answers["ann"]
    clock.set(CLOSES)
    with pytest.raises(FarshiftError, match="is closed: it accepted answers until"):
        submit_answers(board, WINDOW, file, clock=clock)
    clock.set(OPENS)
    assert submit_answers(board, WINDOW, file, clock=clock)[1]
    clock.set(CLOSES)
    close_window(board, WINDOW, clock)
    clock.set(OPENS)  # a board whose clock was set back
    with pytest.raises(FarshiftError, match="accepted answers until"):
        submit_answers(board, WINDOW, handed.answers["bob"], clock=clock)


def test_answers_to_another_window_are_refused(opened, handed, clock):
    sealed(opened, clock, bytes(32))
    with pytest.raises(BadSubmission, match="another version"):
        submit_answers(opened, "coins__longer-2", handed.answers["ann"], clock=clock)


def test_a_window_is_not_closed_before_its_time(opened, clock):
    with pytest.raises(FarshiftError, match=f"closes at {CLOSES}: it is open now"):
        close_window(opened, WINDOW, clock)
    assert "seed_revealed" not in kinds(opened)


def test_at_the_close_every_answer_is_scored_and_the_seed_revealed(revealed):
    assert kinds(revealed)[2:] == ["submitted"] * 3 + ["scored"] * 3 + ["seed_revealed"]
    window = read_windows(revealed.ledger.records())[WINDOW]
    assert window.secret == SEED
    result = make_window_results(revealed, WINDOW)
    assert result["state"] == "revealed"
    for entry in result["entries"]:
        score = entry["score"]
        assert score["entry_identity"] and score["metric"] == "accuracy@1"
        assert (score["id"]["rows"], score["ood"]["rows"]) == (88, 176)
        assert score["views"]["public_ood"]["rows"] == 176
        assert 0.5 < score["ood"]["value"] < 0.9


def test_the_team_that_knew_the_published_test_is_flagged_and_no_other(revealed):
    entries = {entry["team"]: entry["contrast"] for entry in make_window_results(revealed, WINDOW)["entries"]}
    for view in ("id", "ood"):
        assert entries["cheat"][view]["flag"] == "better on public"
        assert entries["cheat"][view]["low"] > 0
        assert entries["cheat"][view]["p_holm"] <= 3 * entries["cheat"][view]["p"] + 1e-5
        assert entries["ann"][view]["flag"] == entries["bob"][view]["flag"] == ""


def test_closing_again_changes_nothing(revealed, clock):
    before = len(revealed.ledger.records())
    assert close_window(revealed, WINDOW, clock).secret == SEED
    assert len(revealed.ledger.records()) == before


def test_a_seed_that_is_lost_after_the_commitment_is_asked_for(board, clock):
    get_seed_path(board, WINDOW).unlink()
    clock.set(CLOSES)
    with pytest.raises(FarshiftError, match="is missing: put it back"):
        close_window(board, WINDOW, clock)


def test_a_window_nobody_answered_is_revealed_all_the_same(opened, clock):
    clock.set(CLOSES)
    close_window(opened, WINDOW, clock)
    assert make_window_results(opened, WINDOW)["entries"] == []
    assert verify_board(opened).differences == []


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


@pytest.mark.attack("operator", "a seed revealed while answers are accepted")
def test_a_seed_that_was_revealed_early_is_found(revealed):
    """An operator who lets a friend see the seed while answers are taken."""
    time = "2031-01-05T00:00:00Z"
    result = problems(revealed, at(revealed, scored=time, seed_revealed=time))
    for what in ("scored", "revealed"):
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
    assert f"was never revealed (due by {REVEALS})" in result


@pytest.mark.attack("operator", "a window that is never closed, for a verifier whose clock is wrong")
def test_a_window_that_is_never_closed_is_found_by_later_records(opened, clock):
    """A verifier's clock may be wrong: the board itself went on after the deadline."""
    clock.set("2031-02-01T00:00:00Z")
    opened.ledger.append([("withdrawn", {"entry": "x", "reason": "y"})])
    assert any("was never revealed" in line for line in problems(opened, clock="2030-01-01T00:00:00Z"))


def test_times_that_are_none_are_named(revealed):
    (result,) = problems(revealed, at(revealed, seed_revealed="soon"))
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
