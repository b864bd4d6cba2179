"""A board's key changes: the old key signs a record that names the new one, and nobody else can."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from farshift import FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.ledger import Record
from farshift.leaderboard.ledger.keys import SigningKey, create_key
from farshift.leaderboard.ledger.record import find_chain_problems, find_current_key, hash_record
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.locations import verify_at
from farshift.leaderboard.operations.manage import rotate_key
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.publish.site import build_site


def note(board: Board) -> Record:
    """Any record."""
    return board.enter([("referenced", {"declared": []})], {})[0]


def signed(records: list[Record], kind: str, body: dict, key: SigningKey) -> list[Record]:
    """A chain with one more record, signed by a key."""
    last = records[-1]
    hash = hash_record(last.seq + 1, last.time, kind, body, last.hash)
    return [*records, Record(last.seq + 1, last.time, kind, body, last.hash, hash, key.sign(hash))]


def test_what_follows_a_rotation_is_signed_by_the_new_key_and_all_of_it_verifies(board, tmp_path):
    first = board.ledger.key
    record, old = rotate_key(board, "a new machine")
    note(board)
    again = Board(board.path)
    again.ledger.append([("referenced", {"declared": []})])
    assert again.ledger.key == first
    assert again.ledger.current() == record.body["key"] != first
    assert SigningKey(old).public == first
    assert oct((board.path / "private" / "key.pem").stat().st_mode & 0o777) == "0o600"
    result = verify_board(again)
    assert result.differences == []
    assert f"record {record.seq} names the key {record.body['key']} for the later records" in result.notes
    export_board(again, tmp_path / "out")
    assert verify_at(str(tmp_path / "out"), key=first).differences == []


def test_the_ledgers_page_tells_the_new_key_and_the_reason(board):
    record, _ = rotate_key(board, "a new <machine>")
    pages = [path.read_text() for path in (build_site(board).parent / "ledger").glob("*.html")]
    assert any(f"Later records are signed by the key {record.body['key']}" in page for page in pages)
    assert any("a new &lt;machine&gt;" in page for page in pages)


def test_a_key_changes_many_times(board):
    keys = [rotate_key(board, f"time {number}")[0].body["key"] for number in range(3)]
    assert len(set(keys)) == 3
    assert Board(board.path).ledger.current() == keys[-1]
    assert len(board.ledger.records()) == 4
    assert find_chain_problems(board.ledger.records(), board.ledger.key) == []


def test_a_process_that_read_the_old_key_goes_on_with_the_new(board):
    other = Board(board.path)
    note(other)
    rotate_key(board, "a new machine")
    note(other)
    assert find_chain_problems(board.ledger.records(), board.ledger.key) == []
    assert [item.kind for item in other.records()[2:]] == ["key_rotated", "referenced"]


@pytest.mark.attack("operator", "a rotation of the board's key that another key signed, or that is undone")
def test_a_rotation_that_another_key_signed_is_none(board, tmp_path):
    first, thief = board.ledger.key, create_key(tmp_path / "thief.pem")
    records = board.ledger.records()
    forged = signed(records, "key_rotated", {"key": thief.public, "reason": ""}, thief)
    forged = signed(forged, "referenced", {"declared": []}, thief)
    assert find_current_key(forged, first) == first
    assert find_chain_problems(forged, first) == [f"record {seq} is not signed by the board's key" for seq in (1, 2)]
    old_key = SigningKey(board.path / "private" / "key.pem")
    rotated = signed(records, "key_rotated", {"key": thief.public, "reason": ""}, old_key)
    undone = signed(rotated, "referenced", {"declared": []}, old_key)
    assert find_chain_problems(undone, first) == ["record 2 is not signed by the board's key"], (
        "the old key signs no more"
    )
    changed = [*rotated[:-1], replace(rotated[-1], body={"key": first, "reason": ""})]
    assert "record 1 (key_rotated) was changed: its hash does not match" in find_chain_problems(changed, first)


def test_the_old_key_appends_nothing_more(board):
    record, old = rotate_key(board, "a new machine")
    new = board.path / "private" / "key.pem"
    new.rename(new.with_name("kept.pem"))
    old.rename(new)
    with pytest.raises(FarshiftError, match=f"is not this board's key: its public key is not {record.body['key']}"):
        note(Board(board.path))


@pytest.mark.parametrize("killed", ["before the record", "after it"])
def test_a_rotation_that_was_killed_can_be_repeated(board, monkeypatch, killed):
    position = (Board, "enter") if killed == "before the record" else (Path, "replace")

    def stopped(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*position, stopped)
        with pytest.raises(KeyboardInterrupt):
            rotate_key(board, "a new machine")
    rotate_key(Board(board.path), "a new machine")
    again = Board(board.path)
    note(again)
    assert [item.kind for item in again.records()] == ["opened", "key_rotated", "referenced"]
    assert verify_board(again).differences == []


def test_a_rotation_that_names_no_key_is_told(board):
    board.ledger.append([("key_rotated", {"key": "none", "reason": ""})])
    note(board)
    assert verify_board(board).differences == ["record 1 names no key for the later records"]


def test_a_rotation_needs_a_reason(board):
    with pytest.raises(FarshiftError, match="needs a reason"):
        rotate_key(board, " ")
    assert len(board.records()) == 1
