"""Public randomness of the entrants: committed to by all before any is revealed; what is missing is named."""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import pytest
from farshift.core.errors import BadData, FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify
from farshift.leaderboard.sealed.opening import open_window, take_share
from farshift.leaderboard.sealed.randomness import announce
from farshift.leaderboard.sealed.results import results
from farshift.leaderboard.sealed.seal import seal
from farshift.leaderboard.sealed.shares import make_share, of_shares
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.sealed.window import windows
from sealed_cases import CLOSES, ON, OPENS, SEED, WINDOW, Clock, key_of, kinds
from test_window_verify import Folder

pytestmark = pytest.mark.usefixtures("decoded_once")

COMMITS, REVEALS = "2030-12-31T12:00:00Z", "2030-12-31T18:00:00Z"
VALUES = {"ann": bytes(32), "bob": bytes([1] * 32), "cid": bytes([2] * 32)}


@pytest.fixture
def announced(coins, clock, tmp_path):
    """A board that announced a window by entrants' shares."""
    board = Board.init(tmp_path / "board", "A board of windows")
    terms = announce("entrants", REVEALS, COMMITS)
    seal(board, ON, OPENS, CLOSES, clock, lambda size: SEED[:size], randomness=terms)
    return board


@pytest.fixture
def files(tmp_path):
    """Commitment and value of three teams."""
    return {
        team: make_share(WINDOW, key_of(tmp_path, team), tmp_path / f"share-{team}", value)
        for team, value in VALUES.items()
    }


@pytest.fixture
def shared(announced, files, clock):
    """That board with three commitments, of which two were revealed."""
    for commitment, _ in files.values():
        take_share(announced, commitment, clock)
    clock.set(COMMITS)
    for team in ("bob", "ann"):
        take_share(announced, files[team][1], clock)
    return announced


def problems(records, board, at=OPENS):
    return verify_sealed(Folder(board.path), records, Clock(at))[0]


def at(board, kind, time):
    return [replace(record, time=time) if record.kind == kind else record for record in board.ledger.records()]


def test_the_window_is_drawn_by_all_revealed_shares_and_names_the_missing(shared, clock, tmp_path):
    with pytest.raises(FarshiftError, match="this clock is before that"):
        open_window(shared, WINDOW, clock=clock)
    clock.set(REVEALS)
    window = open_window(shared, WINDOW, clock=clock)
    assert kinds(shared)[2:] == 3 * ["share_committed"] + 2 * ["share_revealed"] + ["randomness", "window_opened"]
    assert window.published["missing"] == [key_of(tmp_path, "cid").public]
    assert window.drawn_by(SEED) not in (SEED, window.drawn_by(bytes(32)))
    assert verify(shared).differences == []
    assert "(1 of 3 never revealed)" in results(shared, WINDOW)["randomness"]


def test_every_value_and_every_team_counts(shared):
    shares = windows(shared.ledger.records())[WINDOW].shares
    whole = of_shares(WINDOW, shares)
    assert of_shares(WINDOW, dict(reversed(shares.items()))) == whole
    for key, share in shares.items():
        if share.value is not None:
            assert of_shares(WINDOW, {**shares, key: replace(share, value=None)}) != whole
            assert of_shares(WINDOW, {**shares, key: replace(share, value=bytes([9] * 32))}) != whole
    assert of_shares("another-1", shares) != whole


@pytest.mark.attack("entrant", "a share chosen by those of others")
def test_a_commitment_once_values_are_shown_is_refused_and_found(announced, files, clock):
    """An entrant who chooses its value by those of the others."""
    take_share(announced, files["ann"][0], clock)
    clock.set(COMMITS)
    with pytest.raises(FarshiftError, match="they were due by"):
        take_share(announced, files["bob"][0], clock)
    assert any(f"after {COMMITS}" in line for line in problems(at(announced, "share_committed", REVEALS), announced))


@pytest.mark.attack("operator", "a value shown before all shares are committed to")
def test_a_value_before_all_commitments_are_in_is_refused_and_found(announced, files, clock):
    take_share(announced, files["ann"][0], clock)
    with pytest.raises(FarshiftError, match="takes the values of shares from"):
        take_share(announced, files["ann"][1], clock)
    clock.set(COMMITS)
    take_share(announced, files["ann"][1], clock)
    for time in ("2030-12-31T11:59:59Z", "2030-12-31T18:01:00Z"):
        assert any("and not from" in line for line in problems(at(announced, "share_revealed", time), announced))
    clock.set(REVEALS)
    take_share(announced, files["ann"][1], clock)  # again changes nothing
    assert kinds(announced).count("share_revealed") == 1


@pytest.mark.attack("entrant", "a second share, or another value than was committed to")
def test_a_second_commitment_or_another_value_of_a_key_is_refused(announced, files, clock, tmp_path):
    take_share(announced, files["ann"][0], clock)
    take_share(announced, files["ann"][0], clock)
    assert kinds(announced).count("share_committed") == 1
    second = make_share(WINDOW, key_of(tmp_path, "ann"), tmp_path / "second")
    with pytest.raises(FarshiftError, match="has committed to another"):
        take_share(announced, second[0], clock)
    clock.set(COMMITS)
    for file in (second[1], files["bob"][1]):
        with pytest.raises(FarshiftError, match="committed to no such value"):
            take_share(announced, file, clock)


@pytest.mark.attack("operator", "shares made up in the name of teams")
def test_a_commitment_in_another_team_s_name_is_refused_and_found(announced, files, clock, tmp_path):
    """An operator who makes up shares of teams that gave none."""
    said = json.loads(files["ann"][0].read_text()) | {"key": key_of(tmp_path, "bob").public}
    (tmp_path / "forged.json").write_text(json.dumps(said))
    with pytest.raises(BadData, match="is not signed by the key"):
        take_share(announced, tmp_path / "forged.json", clock)
    announced.ledger.append([("share_committed", said)])
    assert any("is not signed by it" in line for line in problems(announced.ledger.records(), announced))


@pytest.mark.attack("operator", "a share left out or changed for the sake of the draw")
def test_a_board_that_leaves_a_share_out_or_changes_one_is_found(shared, clock):
    """An operator who knows its secret and would rather have another draw."""
    clock.set(REVEALS)
    open_window(shared, WINDOW, clock=clock)
    records = shared.ledger.records()
    assert problems(records, shared) == []
    first = next(record for record in records if record.kind == "share_revealed")
    found = problems([record for record in records if record != first], shared)
    assert any("is not that of the revealed shares" in line for line in found)
    assert any("names other missing shares" in line for line in found)
    changed = replace(first, body=first.body | {"value": "77" * 32})
    found = problems([changed if record == first else record for record in records], shared)
    assert any("as another value than it committed to" in line for line in found)
    found = problems([*records, replace(first, seq=99)], shared)
    assert any("took a share after its randomness" in line for line in found)
    assert any("took a second share of a key" in line for line in found)


def test_a_window_of_which_nobody_revealed_a_share_is_not_opened(announced, files, clock):
    take_share(announced, files["ann"][0], clock)
    clock.set(REVEALS)
    with pytest.raises(FarshiftError, match="nobody revealed a share"):
        open_window(announced, WINDOW, clock=clock)


def test_shares_are_of_windows_that_announced_them_and_of_times_in_order(board, files, clock):
    with pytest.raises(FarshiftError, match="it takes no shares"):
        take_share(board, files["ann"][0], clock)
    with pytest.raises(FarshiftError, match="after all are committed"):
        announce("entrants", COMMITS, REVEALS)
    with pytest.raises(FarshiftError, match="say which"):
        announce("entrants", REVEALS)
    clock.set(COMMITS)
    with pytest.raises(FarshiftError, match="nobody can know yet"):
        seal(board, ON, OPENS, CLOSES, clock, randomness=announce("entrants", REVEALS, COMMITS))


def test_a_value_is_kept_private_and_a_share_is_not_made_over_another(files, tmp_path):
    _, value = files["ann"]
    assert stat.S_IMODE(value.stat().st_mode) == 0o600
    with pytest.raises(FarshiftError, match="has a share already"):
        make_share(WINDOW, key_of(tmp_path, "ann"), value.parent)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"window": "a", "key": "00", "value": "00"}', "[" * 9000])
def test_files_that_are_no_share_are_refused(announced, clock, tmp_path, content):
    (tmp_path / "odd.json").write_text(content)
    with pytest.raises(BadData, match="is not a share"):
        take_share(announced, tmp_path / "odd.json", clock)
