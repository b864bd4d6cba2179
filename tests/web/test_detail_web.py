"""The pages of a real board in a browser: comparisons, the ledger and submitting."""

from __future__ import annotations

import re

import pytest
from browsing import overflow, serious, served, visit
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.publish.site import Site, write_site
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.snapshot import take_snapshot
from made_runs import three_runs


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A small real board, and its site: three entries, two of one table."""
    base = tmp_path_factory.mktemp("real")
    board = Board.init(base / "board", "A board <i>")
    submit_runs(board, pack_runs(three_runs(base), base / "one.zip", team="us", note="a <note>"))
    site = Site(take_snapshot(board), board)
    write_site(site, board.path / "site")
    return board, site


@pytest.fixture(scope="module")
def there(real):
    with served(real[0].path) as address:
        yield address + "site/"


def test_what_only_a_real_board_has_fits_a_small_screen_and_axe_finds_nothing_serious(browser, there, real):
    """The ledger, and a comparison with its rows; pages of other kinds: test_pages.py."""
    pair = next(path for path in real[1].pages if re.fullmatch(r"compare/[0-9a-f]{16}-[0-9a-f]{16}\.html", path))
    for path in ("ledger.html", "ledger/0.html", pair):
        with visit(browser, there, path, width=360, scheme="dark") as page:
            assert overflow(page) <= 0, path
            assert serious(page) == [], path


def test_two_entries_are_chosen_and_compared_and_one_is_not_enough(browser, there, real):
    view = next(view for view in real[1].snapshot.views if len(view.rows) == 2)
    with visit(browser, there, f"compare/{view.anchor}.html") as page:
        boxes = page.get_by_role("checkbox")
        boxes.nth(0).check()
        page.get_by_role("button", name="Compare them").click()
        assert page.get_by_role("status").inner_text() == "Choose two."
        boxes.nth(1).focus()
        page.keyboard.press("Space")
        page.get_by_role("button", name="Compare them").click()
        page.wait_for_url("**/compare/*-*.html")
        assert "against" in page.get_by_role("heading", level=1).inner_text()


def test_a_severity_curve_has_its_data_in_a_table(browser, there, real):
    entry = next(row for view in real[1].snapshot.views for row in view.rows if row.standing.score.severity)
    with visit(browser, there, f"entries/{entry.standing.entry}.html") as page:
        figure = page.locator("figure", has_text="Score by severity")
        figure.locator("summary").click()
        table = figure.get_by_role("table")
        assert table.is_visible()
        assert table.locator("tbody tr").count() == len(entry.standing.score.severity)


def test_commands_name_the_address_that_serves_the_board(browser, there, real):
    with visit(browser, there, "ledger.html") as page:
        assert (
            page.locator(".command").inner_text().startswith(f"farshift board verify {there.removesuffix('/site/')} ")
        )


def test_without_a_server_the_form_says_how_to_hand_in(browser, there, tmp_path):
    file = tmp_path / "some.zip"
    file.write_bytes(b"PK")
    context = browser.new_context()
    page = context.new_page()
    page.goto(there + "submit.html")
    page.get_by_label("Submission").set_input_files(file)
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("These pages are a copy of the board, without its server").wait_for()
    assert not page.locator("#upload").is_visible()
    context.close()
