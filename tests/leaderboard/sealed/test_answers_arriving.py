"""Answers to a window are dated when they arrive and checked in turn: a busy server makes a team wait, and costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from farshift import FarshiftError
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed.seal import close_window
from farshift.leaderboard.sealed.submit import submit_to_board
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.server.accounts import create_token, revoke_token
from intake import Intake, score_here, taking_in, working
from sealed_cases import CLOSES, OPENS, WINDOW, Clock, kinds
from test_window_verify import list_folder

pytestmark = pytest.mark.usefixtures("decoded_once")

LAST = "2031-01-07T23:59:59Z"
"""The last second of the window."""


@pytest.fixture
def intake(opened, clock) -> Iterator[Intake]:
    """A server of a board whose window is open, where nobody is at work yet."""
    with taking_in(opened, score_here, team="ann") as running:
        yield running


def state_of(intake: Intake, answer: httpx2.Response) -> dict[str, Any]:
    """The state at the address that an answer names."""
    state: dict[str, Any] = httpx2.get(str(answer.url.join(answer.headers["Location"])), timeout=60).json()
    return state


@pytest.mark.attack("entrant", "answers that keep a server busy until a window closes, to lock another team out")
def test_answers_that_arrive_in_time_count_however_busy_the_server_is(intake, handed, clock):
    """Four teams send answers that take long to check; another one sends its own in the last second."""
    others = [create_token(intake.board.ledger.store, f"team {number}")[0] for number in range(4)]
    busy = [
        intake.post(b"no zip, or a large one" * number, token, window=WINDOW)
        for token in others
        for number in range(1, 4)
    ]
    clock.set(LAST)
    accepted = intake.post(handed.answers["ann"].read_bytes(), window=WINDOW)
    assert {answer.status_code for answer in (*busy, accepted)} == {202}
    assert (accepted.json()["state"], accepted.json()["received"]) == ("queued", LAST)

    clock.set(CLOSES, seconds=600)
    with pytest.raises(FarshiftError, match="13 answers arrived in time, not checked yet: repeat this command when"):
        close_window(intake.board, WINDOW)
    assert intake.work() == 13
    assert state_of(intake, accepted)["state"] == "entered"
    record = intake.board.ledger.records()[-1]
    assert (record.body["received"], record.time) == (LAST, "2031-01-08T00:10:00Z")
    assert record.body["team"] == "ann"
    assert {state_of(intake, answer)["state"] for answer in busy} == {"refused"}
    close_window(intake.board, WINDOW)
    assert kinds(intake.board)[2:] == ["submitted", "scored", "seed_revealed"]
    assert verify_board(intake.board).differences == []


def test_answers_that_arrive_late_are_refused_and_not_stored(intake, handed, clock):
    clock.set(CLOSES)
    late = intake.post(handed.answers["ann"].read_bytes(), window=WINDOW)
    assert (late.status_code, "is closed" in late.json()["error"]) == (409, True)
    assert list(intake.state.files.folder.iterdir()) == [] == intake.state.queue.jobs()


def test_the_command_waits_for_the_check_and_may_be_repeated(intake, handed, clock):
    file = handed.answers["ann"]
    with working(intake):
        first = submit_to_board(intake.url, WINDOW, file, intake.token)
        clock.set(CLOSES, seconds=5)
        again = submit_to_board(intake.url, WINDOW, file, intake.token)
    assert (first["new"], first["received"]) == (True, "2031-01-01T00:01:00Z")
    assert again == first | {"new": False}


def test_answers_that_the_board_failed_to_check_count_from_their_first_arrival(opened, handed, clock):
    with taking_in(opened, score_here, team="ann", attempts=1) as intake:
        content = handed.answers["ann"].read_bytes()
        first = intake.post(content, window=WINDOW)
        intake.state.queue.broke(intake.state.queue.take("a worker"), "the disk was full")
        assert state_of(intake, first)["state"] == "failed"
        clock.set(CLOSES, seconds=60)
        again = intake.post(content, window=WINDOW)
        assert (again.status_code, again.json()["received"]) == (202, first.json()["received"])
        assert intake.work() == 1
        assert state_of(intake, again)["state"] == "entered"


@pytest.mark.attack("entrant", "answers and submissions sent with a token that is revoked while they wait")
def test_answers_of_a_token_that_was_revoked_meanwhile_are_not_entered(intake, handed):
    accepted = intake.post(handed.answers["ann"].read_bytes(), window=WINDOW)
    (job,) = intake.state.queue.jobs()
    revoke_token(intake.board.ledger.store, job.token)
    assert intake.work() == 1
    state = state_of(intake, accepted)
    assert (state["state"], state["reason"]) == ("refused", "the token that it was sent with was revoked")
    assert "submitted" not in kinds(intake.board)


@pytest.mark.attack("operator", "answers recorded before they arrived, or dated outside the window")
@pytest.mark.parametrize(("received", "why"), [(CLOSES, "after it was recorded"), ("2030-12-31T00:00:00Z", "outside")])
def test_a_time_of_arrival_that_cannot_be_is_found(intake, handed, clock, received, why):
    intake.post(handed.answers["ann"].read_bytes(), window=WINDOW)
    clock.set(OPENS, seconds=300)
    assert intake.work() == 1
    records = intake.board.ledger.records()
    changed = replace(records[-1], body=records[-1].body | {"received": received})
    assert records[-1].body["received"] == "2031-01-01T00:01:00Z"
    differences, _ = verify_sealed(list_folder(intake.board.path), [*records[:-1], changed], Clock(OPENS))
    assert any(why in line for line in differences)
