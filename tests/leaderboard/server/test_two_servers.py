"""Two servers on one PostgreSQL database, and the folder that they share."""

from __future__ import annotations

from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs
from running import running


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
