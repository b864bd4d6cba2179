"""Comparisons that the server makes for whoever chooses them."""

from __future__ import annotations

from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs


def test_the_entries_of_one_table_are_compared_and_others_are_refused(serve, packed, tmp_path):
    board = Board.init(tmp_path / "board", "A board")
    good, worse, echo = (submit_runs(board, file)[0][0] for file in packed)
    server = serve(board.path)
    answer = server.get("api/v1/compare", params={"entry": [good, worse]})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "Row by row" in answer.text
    assert 'href="../../static/style.css"' in answer.text
    again = server.get(
        "api/v1/compare", params={"entry": [worse, good]}, headers={"If-None-Match": answer.headers["etag"]}
    )
    assert again.status_code in (200, 304)
    for entries, status in (([good], 400), ([good, echo], 400), ([good, "0" * 16], 404), ([], 422)):
        refused = server.get("api/v1/compare", params={"entry": entries})
        assert refused.status_code == status, entries
        assert refused.json()["error"]
