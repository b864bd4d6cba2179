"""A window that announced a round of drand: the board is bound to its secret before the round, and draws by both."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from farshift.core.errors import FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify
from farshift.leaderboard.sealed import drand
from farshift.leaderboard.sealed.close import close
from farshift.leaderboard.sealed.drand import QUICKNET
from farshift.leaderboard.sealed.export import export_draw
from farshift.leaderboard.sealed.opening import open_window
from farshift.leaderboard.sealed.randomness import BeaconRound
from farshift.leaderboard.sealed.results import results
from farshift.leaderboard.sealed.seal import seal
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.sealed.window import windows
from sealed_cases import ON, SEED, WINDOW, Clock, kinds
from test_drand import ANOTHER, RANDOMNESS, SIGNATURE
from test_window_verify import Folder, changed

pytestmark = pytest.mark.usefixtures("decoded_once")

BEFORE, OPENS, CLOSES = "2023-08-23T15:00:00Z", "2023-08-23T16:00:00Z", "2023-08-30T16:00:00Z"
ROUND = BeaconRound(QUICKNET.chain, 1000)


@pytest.fixture(autouse=True)
def signed(monkeypatch):
    """The signature of round 1000 is the published one. (That it verifies, and no other, is tested in test_drand.)"""
    monkeypatch.setattr(drand, "_signed", lambda of, number, given: (number, given.hex()) == (1000, SIGNATURE))


@pytest.fixture
def beacon(tmp_path):
    file = tmp_path / "beacon.json"
    file.write_text(json.dumps({"round": 1000, "randomness": RANDOMNESS, "signature": SIGNATURE}))
    return file


@pytest.fixture
def committed(coins, clock, tmp_path):
    """A board that announced a window with round 1000."""
    clock.set(BEFORE)
    board = Board.init(tmp_path / "board", "A board of windows")
    seal(board, ON, OPENS, CLOSES, clock, lambda size: SEED[:size], randomness=ROUND)
    return board


@pytest.fixture
def drawn(committed, beacon, clock):
    """That board once the round was there."""
    clock.set(OPENS)
    open_window(committed, WINDOW, beacon, clock)
    return committed


def test_the_commitment_comes_alone_and_the_draw_after_the_round(committed, beacon, clock, tmp_path):
    assert kinds(committed) == ["opened", "seed_committed"]
    assert results(committed, WINDOW)["state"] == "committed"
    with pytest.raises(FarshiftError, match="it is committed|is committed"):
        export_draw(committed, WINDOW, tmp_path / "early", clock)
    clock.set(OPENS)
    window = open_window(committed, WINDOW, beacon, clock)
    assert kinds(committed) == ["opened", "seed_committed", "randomness", "window_opened"]
    assert window.published == {"window": WINDOW, "round": 1000, "signature": SIGNATURE, "randomness": RANDOMNESS}
    assert window.drawn_by(SEED) != SEED
    assert open_window(committed, WINDOW, None, clock).opened == window.opened  # again changes nothing
    assert kinds(committed).count("window_opened") == 1


def test_after_the_reveal_anybody_recomputes_the_draw_from_secret_and_round(drawn, clock):
    clock.set(CLOSES)
    close(drawn, WINDOW, clock)
    assert verify(drawn).differences == []
    found = results(drawn, WINDOW)
    assert "round 1000 of drand's quicknet" in found["randomness"]
    assert found["terms"]["randomness"]["public_key"] == QUICKNET.public_key
    assert windows(drawn.ledger.records())[WINDOW].secret == SEED


def problems(board, records, at=CLOSES):
    return verify_sealed(Folder(board.path), records, Clock(at))[0]


@pytest.mark.attack("operator", "a draw by a secret that was searched for, the announced round ignored")
def test_a_board_that_draws_by_its_secret_alone_is_found(drawn, clock):
    """An operator who tried secrets until one gave rows that suit a friend, and ignores the round."""
    clock.set(CLOSES)
    close(drawn, WINDOW, clock)
    kept = [record for record in drawn.ledger.records() if record.kind != "randomness"]
    found = problems(drawn, kept)
    assert any("opened before its public randomness" in line for line in found)
    assert any("waits for its public randomness" in line for line in found)


@pytest.mark.attack("operator", "another round than the announced one")
def test_another_beacon_than_the_announced_round_is_refused_and_found(committed, drawn, beacon, clock, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"round": 657413, "signature": ANOTHER}))
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps({"round": 1000, "signature": ANOTHER}))
    fresh = Board.init(tmp_path / "fresh", "Another board")
    clock.set(BEFORE)
    seal(fresh, ON, OPENS, CLOSES, clock, lambda size: SEED[:size], randomness=ROUND)
    clock.set(OPENS)
    for file, why in ((other, "is round 657413"), (forged, "does not verify"), (None, "give its beacon")):
        with pytest.raises(FarshiftError, match=why):
            open_window(fresh, WINDOW, file, clock)
    assert "randomness" not in kinds(fresh)
    found = problems(drawn, changed(drawn, "randomness", signature=ANOTHER))
    assert any("does not verify" in line for line in found)
    found = problems(drawn, changed(drawn, "randomness", randomness="00" * 32))
    assert any("is not that of the beacon's signature" in line for line in found)


@pytest.mark.attack("operator", "a round announced that is known already")
def test_a_round_that_is_known_already_cannot_be_announced(coins, clock, tmp_path):
    clock.set("2023-08-23T15:59:24Z")
    board = Board.init(tmp_path / "board", "B")
    with pytest.raises(FarshiftError, match="nobody can know yet"):
        seal(board, ON, OPENS, CLOSES, clock, randomness=ROUND)
    clock.set(BEFORE)
    with pytest.raises(FarshiftError, match="comes after the window opens"):
        seal(board, ON, "2023-08-23T15:30:00Z", CLOSES, clock, randomness=ROUND)


@pytest.mark.attack("operator", "a secret chosen after the round")
def test_a_commitment_that_was_written_after_the_round_is_found(drawn):
    """An operator who knew the round when it chose its secret."""
    late = [
        replace(record, time="2023-08-23T15:59:30Z") if record.kind == "seed_committed" else record
        for record in drawn.ledger.records()
    ]
    assert any("when its public randomness was known" in line for line in problems(drawn, late, OPENS))


@pytest.mark.attack("operator", "a window given up because of its draw")
def test_a_window_that_is_given_up_because_of_its_draw_is_found(committed, beacon, clock):
    """An operator who sees the draw that the round gives, dislikes it, and never opens the window."""
    records = committed.ledger.records()
    assert problems(committed, records, OPENS) == []
    assert problems(committed, records, "2023-08-23T17:00:00Z") == []
    (found,) = problems(committed, records, "2023-08-23T17:00:01Z")
    assert "was never opened: that was due by 2023-08-23T16:00:00Z" in found
    clock.set(CLOSES)
    with pytest.raises(FarshiftError, match="was never opened: seal another"):
        open_window(committed, WINDOW, beacon, clock)


def test_a_window_that_waits_does_not_hinder_another_of_its_benchmark(committed, clock):
    other = seal(committed, ON, OPENS, CLOSES, clock, lambda size: bytes(size))
    assert (other.name, other.sources) == ("coins__longer-2", "the board's randomness alone")


def test_an_opening_that_is_cut_off_is_carried_on_with_the_same_round(committed, beacon, clock, monkeypatch, tmp_path):
    clock.set(OPENS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("farshift.leaderboard.sealed.opening.enter_draw", lambda *more: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            open_window(committed, WINDOW, beacon, clock)
    assert kinds(committed)[2:] == ["randomness"]
    window = open_window(Board(committed.path), WINDOW, None, clock)
    assert kinds(committed)[2:] == ["randomness", "window_opened"]
    assert window.published["randomness"] == RANDOMNESS


def test_where_the_library_is_absent_verify_says_that_the_beacon_was_not_recomputed(drawn, monkeypatch):
    from farshift.core.errors import MissingExtra

    def absent(*more):
        raise MissingExtra("verifying a drand beacon", "beacon")

    monkeypatch.setattr(drand, "_signed", absent)
    differences, unsure = verify_sealed(Folder(drawn.path), drawn.ledger.records(), Clock(OPENS))
    assert differences == []
    assert any("farshift[beacon]" in line for line in unsure)


@pytest.mark.attack("operator", "a draw that the operator chose")
def test_another_board_that_copies_the_secret_draws_other_rows(drawn, tmp_path):
    shutil.copytree(drawn.path, tmp_path / "copy")
    first = windows(drawn.ledger.records())[WINDOW]
    assert first.drawn_by(SEED) != replace(first, terms=replace(first.terms, window="coins__longer-2")).drawn_by(SEED)
