"""A board: what goes in is validated and scored, stays there, and is taken out of the tables only with a reason."""

from __future__ import annotations

import json
import shutil
import signal
import tomllib
from pathlib import Path

import farshift as fs
import postgres
import pytest
from farshift import FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.ledger.book import Ledger
from farshift.leaderboard.operations.submit import submit_runs, withdraw_entry
from farshift.leaderboard.storage.board_files import (
    compute_digests,
    find_path_problem,
    list_named_files,
    list_public_files,
)
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.teams import make_team_identity
from recomputed import verified

pytestmark = pytest.mark.usefixtures("remembered")


@pytest.fixture(scope="module")
def packed(runs, tmp_path_factory):
    """The submission of some of the three runs, packed once."""
    folder = tmp_path_factory.mktemp("packed")

    def one(*numbers: int, **said: str) -> Path:
        path = folder / f"{numbers}{said}.zip"
        return path if path.exists() else pack_runs([runs[number] for number in numbers], path, **said)

    return one


def kinds(board: Board) -> list[str]:
    return [record.kind for record in board.ledger.records()]


def test_a_submission_is_scored_from_its_predictions(runs, packed, board):
    entries, new = submit_runs(board, packed(0, 1, 2, team="us", name="ours"))
    assert new
    assert [row.entry for row in board.standings()] == entries
    for row in board.standings():
        (path,) = (path for path in runs if fs.read_run(path).model == row.score.model)
        (file,) = (board.path / "scores" / row.entry).iterdir()
        assert file.name == f"{row.score.scorer}.json"
        assert file.read_bytes() == fs.score(path).json(), "the same bytes offline and on the board"
    assert kinds(board) == ["opened", "submitted", "scored", "scored", "scored"]
    assert board.ledger.records()[1].body["name"] == "ours"
    assert verified(board) == (3, [])


def test_a_file_that_another_hands_in_between_two_looks_at_the_ledger_is_no_one_elses(packed, board, monkeypatch):
    file, read, looks = packed(0, team="us"), Ledger.records, 0

    def records(self):
        nonlocal looks
        result = read(self)
        looks += 1
        if looks == 2:  # the first look is before the file is read
            submit_runs(Board(board.path), file)
        return result

    monkeypatch.setattr(Ledger, "records", records)
    entries, new = submit_runs(board, file)
    assert not new
    assert [item.entry for item in board.standings()] == entries
    assert verified(board) == (1, [])


def test_a_file_that_changes_while_it_is_scored_is_refused(packed, board, tmp_path, monkeypatch):
    file = Path(shutil.copy(packed(0, team="us"), tmp_path / "s.zip"))
    from farshift.leaderboard.operations import submit as submitting

    scored = submitting.score_entry

    def swapped(entry):
        file.write_bytes(b"something else")
        return scored(entry)

    monkeypatch.setattr(submitting, "score_entry", swapped)
    with pytest.raises(FarshiftError, match="changed while it was being checked"):
        submit_runs(board, file)
    assert kinds(board) == ["opened"]


KILLED = """
import json, os, signal, sys
os.environ |= json.loads(sys.argv[4])
import farshift.leaderboard.board as board
import farshift.leaderboard.operations.submit as submitting
from farshift.leaderboard.ledger.book import Ledger
def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
place = sys.argv[3]
if place == "scoring": submitting.score_entry = killed
elif place == "ledger": Ledger.append = killed
elif place == "publish": board.publish_files = killed
submitting.submit_runs(board.Board(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.attack("disk", "kill -9 of a board that takes a submission")
@pytest.mark.parametrize("place", ["scoring", "ledger", "publish"])
def test_a_submit_that_is_killed_leaves_all_or_nothing(packed, board, place, python):
    file = packed(0, 1)
    done = python.run("-c", KILLED, board.path, file, place, "{}")
    assert done.returncode == -signal.SIGKILL, done.stderr
    entered = place == "publish"
    assert len(board.standings()) == (2 if entered else 0)
    assert verified(board) == ((2, []) if entered else (0, []))
    assert submit_runs(board, file)[1] is not entered
    assert verified(board) == (2, [])
    assert not list((board.path / "incoming").iterdir())


def test_an_entry_that_goes_is_listed_apart_with_the_reason_and_still_verified(packed, board):
    entries, _ = submit_runs(board, packed(0, 1, 2, team="us", name="ours"))
    withdraw_entry(board, entries[0], "trained on\n the test rows ")
    withdraw_entry(board, entries[1], "not the model it names", by_board=True)
    withdraw_entry(board, entries[0], "and so said the board", by_board=True)
    assert [row.entry for row in board.standings()] == [entries[2]]
    apart = {item.entry: (item.left.kind, item.left.reason) for item in board.removed_entries()}
    assert apart == {
        entries[0]: ("removed", "and so said the board"),
        entries[1]: ("removed", "not the model it names"),
    }
    assert kinds(board)[-3:] == ["withdrawn", "removed", "removed"]
    assert board.ledger.records()[-3].body["reason"] == "trained on the test rows"
    assert verified(board) == (3, [])


def test_an_entry_goes_once_and_only_with_a_reason(packed, board):
    (entry,), _ = submit_runs(board, packed(0, team="us"))
    for reason in ("", "  ", "x" * 1001, "a \x07 bell"):
        with pytest.raises(FarshiftError, match="the reason must have 1 to 1000 printable characters"):
            withdraw_entry(board, entry, reason)
    with pytest.raises(FarshiftError, match="no entry named '0123456789abcdef'"):
        withdraw_entry(board, "0123456789abcdef", "why not", by_board=True)
    withdraw_entry(board, entry, "a bug")
    with pytest.raises(FarshiftError, match=r"was already withdrawn \(a bug\)"):
        withdraw_entry(board, entry, "again")
    withdraw_entry(board, entry, "for good", by_board=True)
    for by_board in (False, True):
        with pytest.raises(FarshiftError, match=r"was already removed \(for good\)"):
            withdraw_entry(board, entry, "again", by_board)


def test_attempts_are_counted_by_team_and_table_also_those_that_went(packed, board):
    first, _ = submit_runs(board, packed(0, team="us"))
    submit_runs(board, packed(1, team="us"))
    submit_runs(board, packed(2, team="them"))
    rows = {row.team: row.score.entry_identity for row in board.standings()}
    withdraw_entry(board, first[0], "a worse one")
    assert board.attempts() == {
        (make_team_identity("us", ""), rows["us"]): 2,
        (make_team_identity("them", ""), rows["them"]): 1,
    }


def test_a_folder_in_use_is_not_taken_and_one_without_a_board_is_none(board, tmp_path):
    with pytest.raises(FarshiftError, match="is not empty: choose another folder"):
        Board.init(board.path, "again")
    with pytest.raises(FarshiftError, match="the title of a board is empty: write --name TITLE"):
        Board.init(tmp_path / "untitled", " ")
    with pytest.raises(FarshiftError, match="is not a board: create one with farshift board init"):
        Board(tmp_path / "absent")


def test_a_board_of_another_format_is_refused(tmp_path):
    (tmp_path / "board.toml").write_text('format = 1\nname = "old"\n')
    with pytest.raises(FarshiftError, match="board.toml: format 1 is not 2"):
        Board(tmp_path)


def test_what_others_see_of_a_board_holds_no_secret(board):
    card = tomllib.loads((board.path / "board.toml").read_text())
    assert card["key"] == board.ledger.key == board.ledger.records()[0].body["key"]
    private = (board.path / "private" / "key.pem").read_text().splitlines()[1]
    assert private not in (board.path / "board.toml").read_text()
    assert (board.path / "private").stat().st_mode & 0o777 == 0o700


def test_the_private_key_may_lie_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_BOARD_KEY", str(tmp_path / "safe" / "key.pem"))
    board = Board.init(tmp_path / "board", "kept apart")
    assert (tmp_path / "safe" / "key.pem").is_file()
    assert not (board.path / "private").exists()
    assert board.ledger.records()[0].kind == "opened"
    monkeypatch.delenv("FARSHIFT_BOARD_KEY")
    moved = Board(board.path)
    assert len(moved.ledger.records()) == 1, "reading needs no key"
    with pytest.raises(FarshiftError, match="the board's private key, is missing"):
        moved.ledger.append([("withdrawn", {})])


def test_files_enter_with_the_records_that_name_them_or_not_at_all(board):
    files = {"sealed/one/draw.toml": b"a draw"}
    body = {"window": "one", "files": compute_digests(files)}
    with pytest.raises(ValueError, match="files and records differ"):
        board.enter([("window_opened", body)], {})
    with pytest.raises(ValueError, match="files and records differ"):
        board.enter([("window_opened", body)], {"sealed/one/draw.toml": b"another"})
    with board.locked(), board.locked():
        board.enter([("window_opened", body)], files)
    assert (board.path / "sealed" / "one" / "draw.toml").read_bytes() == b"a draw"
    assert list_named_files(board.ledger.records()) == compute_digests(files)
    assert not any("sealed/one" in line for line in verified(board)[1])


@pytest.mark.parametrize(
    "path",
    ["../x", "scores/../x", "/etc/x", "private/key.pem", "incoming/x", "site/x", "scores/.x", "x", "scores//x", "", 3,
     "scores/x\n", "Scores/x", "scores\\x/y", "scores/" + "x" * 200],
)  # fmt: skip
def test_a_record_names_no_file_outside_the_board_s_own_places(path, board):
    assert find_path_problem(path)
    with pytest.raises((ValueError, TypeError)):
        board.enter([("withdrawn", {"files": {path: "0" * 64}})], {path: b""})


def test_answers_to_a_sealed_window_are_no_entries_and_are_held_back_until_it_closes(board):
    files = {"sealed/one/answers.zip": b"answers"}
    board.enter([("submitted", {"window": "one", "team": "us", "files": compute_digests(files)})], files)
    board.ledger.append([("scored", {"window": "one", "team": "us"})])
    assert board.standings() == []
    assert list_public_files(board.ledger.records()) == {}
    board.ledger.append([("seed_revealed", {"window": "other"})])
    assert list_public_files(board.ledger.records()) == {}
    board.ledger.append([("seed_revealed", {"window": "one"})])
    assert list_public_files(board.ledger.records()) == compute_digests(files)


def test_a_database_s_password_is_kept_private(tmp_path, server, monkeypatch):
    url = server.database()
    board = Board.init(tmp_path / "board", "on a server", url)
    output = [path for path in board.path.rglob("*") if path.is_file() and postgres.PASSWORD in path.read_text()]
    assert output == [board.path / "private" / "store.url"]
    assert output[0].stat().st_mode & 0o777 == 0o600
    assert postgres.PASSWORD not in json.dumps([record.body for record in board.ledger.records()])
    output[0].unlink()
    with pytest.raises(FarshiftError, match=r"store\.url, the URL of the ledger's database .* FARSHIFT_BOARD_STORE"):
        Board(board.path)
    monkeypatch.setenv("FARSHIFT_BOARD_STORE", url)
    assert len(Board(board.path).ledger.records()) == 1


def test_a_database_holds_one_board(tmp_path, server):
    url = server.database()
    Board.init(tmp_path / "board", "ours", url)
    with pytest.raises(FarshiftError, match="holds another board's ledger: use a database for this board alone"):
        Board.init(tmp_path / "other", "theirs", url)
