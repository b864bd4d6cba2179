"""A window: committed before it opens, one submission of each team while it is open, revealed after it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farshift import FarshiftError
from farshift.core.errors import BadSubmission
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed.results import make_window_results
from farshift.leaderboard.sealed.seal import close_window, get_seed_path, seal_benchmark
from farshift.leaderboard.sealed.submit import submit_answers
from farshift.leaderboard.sealed.window import parse_time, read_windows
from sealed_cases import CLOSES, ON, OPENS, SEED, WINDOW, kinds, sealed

pytestmark = pytest.mark.usefixtures("decoded_once")


def test_the_commitment_comes_before_the_window_and_binds_seed_and_terms(board):
    assert kinds(board) == ["opened", "seed_committed", "window_opened"]
    window = read_windows(board.ledger.records())[WINDOW]
    assert window.terms.commitment(SEED) == window.commitment
    assert window.terms.commitment(bytes(32)) != window.commitment
    for name in ("window", "benchmark", "manifest", "closes", "reveals"):
        assert replace(window.terms, **{name: "other"}).commitment(SEED) != window.commitment


@pytest.mark.parametrize(("closes", "why"), [("2030-12-31", "is in the past"), ("2031-13-01", "is not a time")])
def test_times_that_make_no_window_are_refused(board, clock, closes, why):
    with pytest.raises(FarshiftError, match=why):
        seal_benchmark(board, ON, closes, clock)
    assert kinds(board) == ["opened", "seed_committed", "window_opened"]


def test_times_are_utc_whatever_zone_they_are_written_in():
    assert parse_time("2031-01-01T02:00:00+02:00") == parse_time("2031-01-01") == parse_time("2031-01-01T00:00:00Z")


def test_windows_of_one_benchmark_are_numbered(board, clock):
    assert sealed(board, clock, bytes(32)).name == "coins__longer-2"
    assert list(read_windows(board.ledger.records())) == [WINDOW, "coins__longer-2"]


def test_answers_are_taken_while_the_window_is_open_only(board, handed, clock):
    file = handed.answers["ann"]
    clock.set(CLOSES)
    with pytest.raises(FarshiftError, match="it is due now"):
        submit_answers(board, WINDOW, file, clock=clock)
    clock.set(OPENS)
    assert submit_answers(board, WINDOW, file, clock=clock)[1]
    clock.set(CLOSES)
    close_window(board, WINDOW, clock)
    clock.set(OPENS)  # a board whose clock was set back
    with pytest.raises(FarshiftError, match="accepts files until"):
        submit_answers(board, WINDOW, handed.answers["bob"], clock=clock)


def test_answers_to_another_window_are_refused(opened, handed, clock):
    sealed(opened, clock, bytes(32))
    with pytest.raises(BadSubmission, match="another version"):
        submit_answers(opened, "coins__longer-2", handed.answers["ann"], clock=clock)


def test_a_window_is_not_closed_before_its_time(opened, clock):
    with pytest.raises(FarshiftError, match=f"closes at {CLOSES}: it is open now"):
        close_window(opened, WINDOW, clock)
    assert "window_closed" not in kinds(opened)


def test_at_the_close_every_answer_is_scored_and_the_seed_revealed(revealed):
    assert kinds(revealed)[3:] == ["submitted"] * 3 + ["window_closed"] + ["scored"] * 3 + ["seed_revealed"]
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
