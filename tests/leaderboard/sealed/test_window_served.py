"""A window behind a server from its announcement to its verification, by the client that entrants have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import farshift as fs
import pytest
from farshift import FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.locations import open_board_view, verify_at
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed import window as windows
from farshift.leaderboard.sealed.published import export_draw
from farshift.leaderboard.sealed.seal import close_window
from farshift.leaderboard.sealed.submit import submit_to_board
from farshift.leaderboard.server.accounts import create_token
from farshift.leaderboard.server.submissions import open_state
from farshift.leaderboard.server.worker import Worker
from farshift.leaderboard.storage.readers import ExportReader
from sealed_cases import CLOSES, OPENS, WINDOW, Clock, Handed

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "server"))
from intake import Intake, ScoredHere, working
from running import Running, running

pytestmark = pytest.mark.usefixtures("decoded_once")

DRAW = ("draw.toml", "inputs.parquet")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The one clock of server, client and operator."""
    built = Clock("2030-12-31T00:00:00Z")

    class Told(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return built()

    monkeypatch.setattr(windows, "datetime", Told)
    monkeypatch.setattr("farshift.leaderboard.ledger.book.get_utc_now", built.written)
    return built


@pytest.fixture
def site(board: Board) -> Iterator[Running]:
    result = running(board.path)
    state = open_state(board.path)
    worker = Worker(board, state.queue)
    worker._scorer = ScoredHere(board.path, state.settings)  # by the clock of these tests
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

    output = window(site)
    assert (output["state"], output["seed"]) == ("announced", None)
    assert {site.get(f"sealed/{WINDOW}/draw/{name}").status_code for name in DRAW} == {404}
    refused(lambda: drawn(site.url, tmp_path / "early"), f"is announced: its draw is published from {OPENS}")
    refused(lambda: hand_in(answers), "it is announced now")

    clock.set(OPENS, seconds=60)
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
    refused(lambda: hand_in(handed.answers["cheat"]), "it is due now|names the team")
    close_window(board, WINDOW)
    output = window(site)
    assert output["state"] == "revealed"
    (entry,) = output["entries"]
    assert (entry["team"], entry["submission"]) == ("ann", submission)
    assert [item["seed"] for item in fs.Board(site.url).windows()] == [output["seed"]]
    result = verify_at(site.url)
    assert (result.differences, result.not_recomputed) == ([], [])


@pytest.mark.attack(
    "entrant", "access to a window's draw before it opens, in an export or in the files behind the pages"
)
def test_a_draw_is_in_no_export_and_at_no_address_before_its_window_opens(
    board: Board, site: Running, clock: Clock, tmp_path: Path
) -> None:
    paths = [f"sealed/{WINDOW}/draw/{name}" for name in DRAW]
    there = export_board(board, tmp_path / "export").out
    assert not [path for path in paths if (there / path).exists()]
    assert {site.get(path).status_code for path in paths} == {404}
    for copy in (ExportReader(there), site.url):
        result = verify_at(copy) if isinstance(copy, str) else verify_board(copy)
        assert (result.differences, result.not_recomputed) == ([], [])

    clock.set(OPENS, seconds=60)
    older = verify_board(ExportReader(there))
    assert older.differences == []
    assert [line.split(" ")[0] for line in older.not_recomputed] == sorted(paths)
    assert "its window is open by now: get a newer copy" in older.not_recomputed[0]
    assert export_board(board, there).new == len(paths)
    assert [site.get(path).content for path in paths] == [(there / path).read_bytes() for path in paths]
    result = verify_board(ExportReader(there))
    assert (result.differences, result.not_recomputed) == ([], [])


@pytest.mark.attack("operator", "a draw that is withheld after its window opened")
def test_a_draw_that_is_missing_once_the_ledger_went_on_after_the_opening_is_a_difference(
    board: Board, clock: Clock, tmp_path: Path
) -> None:
    clock.set(OPENS, seconds=60)
    board.ledger.append([("referenced", {"declared": []})])
    there = export_board(board, tmp_path / "export").out
    (there / f"sealed/{WINDOW}/draw/inputs.parquet").unlink()
    assert f"sealed/{WINDOW}/draw/inputs.parquet is missing" in verify_board(ExportReader(there)).differences
