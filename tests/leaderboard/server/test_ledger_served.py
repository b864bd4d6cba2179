"""The ledger from a real server: its records, the board as an export of it, and two servers of one database."""

from __future__ import annotations

import sqlite3

from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.operations.verify import verify_at
from farshift.leaderboard.storage.readers import open_board_view
from farshift.leaderboard.tables.snapshot import take_snapshot
from running import running


def test_a_server_verifies_and_is_read_as_a_static_export_is(site, filled, tmp_path):
    board = Board(filled)
    export_board(board, tmp_path / "public")
    for file in sorted((tmp_path / "public").rglob("*")):
        if file.is_file():
            assert site.get(file.relative_to(tmp_path / "public").as_posix()).content == file.read_bytes(), file
    result = verify_at(site.url)
    assert (result.differences, result.not_recomputed, result.verified) == ([], [], 3)
    with open_board_view(site.url) as view:
        assert take_snapshot(view).record() == take_snapshot(board).record()


def test_an_entry_that_another_process_makes_is_seen_at_once(filled, packed, serve, tmp_path):
    board = Board.init(tmp_path / "growing", "Growing")
    served = serve(board.path)
    assert served.json("entries")["entries"] == []
    names, _ = submit_runs(Board(board.path), packed[0])
    assert [item["entry"] for item in served.json("entries")["entries"]] == names
    digest = served.json("entries")["entries"][0]["submission"]
    assert served.get(f"submissions/{digest}.zip").content == packed[0].read_bytes()
    served.until(lambda: "models/" in served.get("").text)
    assert served.json("entries")["head"]["seq"] == 2


def test_a_ledger_that_was_changed_is_not_shown(own, serve, caplog):
    served = serve(own.path)
    assert served.get("ledger.jsonl").status_code == 200
    with sqlite3.connect(own.path / "ledger.sqlite") as database:
        database.execute("DELETE FROM records WHERE seq = (SELECT max(seq) FROM records)")
        database.execute("UPDATE records SET body = '{}' WHERE seq = 2")
    assert served.get("ledger.jsonl").status_code == served.get("api/v1/entries").status_code == 503
    assert "was changed: its hash does not match" in caplog.text, "only the operator sees which record"
    assert served.get("readyz").status_code == 503


def test_two_servers_on_one_database_show_one_submission(server, packed, tmp_path):
    board = Board.init(tmp_path / "board", "Shared", server.database())
    both = [running(board.path), running(board.path)]
    try:
        assert [item.json("entries")["entries"] for item in both] == [[], []]
        names, _ = submit_runs(Board(board.path), packed[1])
        for item in both:
            assert [entry["entry"] for entry in item.json("entries")["entries"]] == names
            item.until(lambda one=item: "models/" in one.get("").text)
        assert both[0].get("").content == both[1].get("").content
        assert both[0].get("ledger.jsonl").content == both[1].get("ledger.jsonl").content
    finally:
        for item in both:
            item.stop()
