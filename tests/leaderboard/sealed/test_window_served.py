"""A window behind a server from its announcement to its verification, by the client that entrants have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import farshift as fs
import pytest
from farshift import FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify_at
from farshift.leaderboard.sealed.published import export_draw
from farshift.leaderboard.sealed.seal import close_window
from farshift.leaderboard.sealed.submit import submit_to_board
from farshift.leaderboard.server.accounts import create_token
from farshift.leaderboard.server.submissions import open_state
from farshift.leaderboard.server.worker import Worker
from farshift.leaderboard.storage.readers import open_board_view
from intake import Intake, score_here, working
from running import Running, running
from sealed_cases import CLOSES, WINDOW, Clock, Handed

pytestmark = pytest.mark.usefixtures("decoded_once")

DRAW = ("draw.toml", "inputs.parquet")


@pytest.fixture
def site(board: Board, clock: Clock) -> Iterator[Running]:
    result = running(board.path)
    state = open_state(board)
    worker = Worker(board, state.queue, score=score_here)  # by the clock of these tests
    with working(Intake(board, state, worker=worker)):
        yield result
    result.stop()


def drawn(place: str, out: Path) -> dict[str, bytes]:
    with open_board_view(place) as result:
        folder = export_draw(result, WINDOW, out)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(action: Callable[[], object], why: str) -> None:
    with pytest.raises(FarshiftError, match=why):
        action()


def window(site: Running) -> dict[str, Any]:
    (listed,) = site.json("windows")["windows"]
    result: dict[str, Any] = listed
    return result


@pytest.mark.slow
def test_a_window_from_its_announcement_to_its_verification(
    board: Board, site: Running, handed: Handed, clock: Clock, tmp_path: Path
) -> None:
    answers = handed.answers["ann"]
    token, _ = create_token(board.ledger.store, "ann")

    def hand_in(file: Path) -> Any:
        return submit_to_board(site.url, WINDOW, file, token)

    given = drawn(site.url, tmp_path / "draw")
    assert window(site)["state"] == "open"
    assert given == {name: site.get(f"sealed/{WINDOW}/draw/{name}").content for name in DRAW}
    assert given == {name: (handed.draw / name).read_bytes() for name in DRAW}
    output = hand_in(answers)
    submission = output["submission"]
    assert (output["new"], hand_in(answers)["new"]) == (True, False)
    refused(lambda: hand_in(handed.answers["bob"]), "names the team 'bob', but the token is for 'ann'")
    assert window(site)["answers"] == 1
    assert site.get(f"sealed/{WINDOW}/answers/{submission}.zip").status_code == 404
    refused(lambda: close_window(board, WINDOW), f"closes at {CLOSES}: it is open now")

    clock.set(CLOSES, seconds=1)
    refused(lambda: hand_in(handed.answers["cheat"]), "is closed|names the team")
    close_window(board, WINDOW)
    output = window(site)
    assert output["state"] == "revealed"
    (entry,) = output["entries"]
    assert (entry["team"], entry["submission"]) == ("ann", submission)
    assert [item["seed"] for item in fs.Board(site.url).windows()] == [output["seed"]]
    result = verify_at(site.url)
    assert (result.differences, result.not_recomputed) == ([], [])
