"""Handing in by the form of submit.html, against a real server."""

from __future__ import annotations

import pytest
from browsing import visit
from farshift.leaderboard.board import Board
from farshift.leaderboard.submission.pack import pack_runs
from made_runs import three_runs

pytest.importorskip("uvicorn")

pytestmark = pytest.mark.slow

PATIENCE = 240_000
"""Milliseconds."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from farshift.leaderboard.server.worker import Workers
    from running import running

    board = Board.init(tmp_path_factory.mktemp("open") / "board", "An open board")
    (board.path / "settings.toml").write_text("[server]\nopen = true\n")
    workers = Workers(board, 1).start()
    result = running(board.path)
    yield result
    result.stop()
    workers.stop()


def test_a_good_file_is_entered_and_its_entry_is_linked(browser, server, tmp_path):
    good = pack_runs(three_runs(tmp_path)[:1], tmp_path / "good.zip", team="us")
    with visit(browser, server.url + "/", "submit.html") as page:
        page.get_by_label("Submission").set_input_files(good)
        page.get_by_role("button", name="Submit", exact=True).click()
        page.get_by_text("Entered.").wait_for(timeout=PATIENCE)
        entry = page.locator("#entries a").get_attribute("href")
        assert "submission=" in page.url
        assert page.locator("#token").input_value() == ""
    assert entry.split("/")[-1].removesuffix(".html") in [item["entry"] for item in server.json("entries")["entries"]]


def test_a_bad_file_is_refused_with_what_is_to_be_mended(browser, server, tmp_path):
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"this is no zip <script>")
    with visit(browser, server.url + "/", "submit.html") as page:
        page.get_by_label("Submission").set_input_files(bad)
        page.get_by_role("button", name="Submit", exact=True).click()
        page.locator("#problems li").first.wait_for(timeout=PATIENCE)
        output = page.locator("#problems").inner_text()
        assert "zip-unreadable" in output
        assert "pack the runs again with farshift pack" in output
        assert "Refused" in page.get_by_role("status").inner_text()


def test_a_wrong_token_is_told_at_its_field_and_stored_nowhere(browser, server, tmp_path):
    some = tmp_path / "some.zip"
    some.write_bytes(b"PK")
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.url + "/submit.html")
    page.get_by_label("Token").fill("no-such-token")
    page.get_by_label("Submission").set_input_files(some)
    page.get_by_role("button", name="Submit", exact=True).click()
    page.locator("#state.bad").wait_for()
    assert page.evaluate("document.activeElement.id") == "token"
    assert page.evaluate("JSON.stringify([localStorage, sessionStorage]) + document.cookie") == "[{},{}]"
    assert "no-such-token" not in page.url
    context.close()
