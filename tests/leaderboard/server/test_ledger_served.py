"""The ledger from a real server: its records, and the board as an export of it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from threading import current_thread

import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.ledger.record import Record
from farshift.leaderboard.ledger.store import Store
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.locations import open_board_view, verify_at
from farshift.leaderboard.operations.manage import withdraw_entry
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.server import models
from farshift.leaderboard.server.routes import board as route
from farshift.leaderboard.server.served_board import History, ServedBoard
from farshift.leaderboard.tables.snapshot import take_snapshot


@pytest.fixture(scope="module")
def records(filled) -> list[Record]:
    return Board(filled).records()


def test_the_records_are_those_of_the_ledger(site, records):
    result = models.Ledger.model_validate(site.json("ledger"))
    assert [Record(**item.model_dump()) for item in result.records] == records
    assert (result.size, result.next) == (len(records), None)
    assert site.get("api/v1/ledger?page=1").status_code == 404


def test_a_full_page_of_records_may_be_kept_for_ever(site, records, monkeypatch):
    monkeypatch.setattr(route, "PAGE", 4)
    assert len(records) == 8
    pages = [site.get("api/v1/ledger", params={"page": page}) for page in range(3)]
    assert ["immutable" in item.headers["Cache-Control"] for item in pages] == [True, True, False]
    assert [len(item.json()["records"]) for item in pages] == [4, 4, 0]
    assert [item.json()["next"] for item in pages] == [1, 2, None]
    assert "no-cache" in pages[2].headers["Cache-Control"]


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


@pytest.mark.parametrize("copy", ["folder", "url"])
def test_a_copy_of_a_board_is_served_to_be_read(own, serve, site, tmp_path, copy):
    export_board(own, tmp_path / "public")
    served = serve(tmp_path / "public" if copy == "folder" else site.url)
    assert served.json("standings") == site.json("standings")
    assert served.json("")["read_only"]
    assert served.get("").content == site.get("").content


def test_an_entry_that_another_process_makes_is_seen_at_once(filled, packed, serve, tmp_path):
    board = Board.init(tmp_path / "growing", "Growing")
    served = serve(board.path)
    assert served.json("entries")["entries"] == []
    names, _ = submit_runs(Board(board.path), packed[0])
    assert [item["entry"] for item in served.json("entries")["entries"]] == names
    digest = served.json(f"entries/{names[0]}")["entry"]["submission"]
    assert served.get(f"submissions/{digest}.zip").content == packed[0].read_bytes()
    served.until(lambda: "models/" in served.get("").text)
    assert served.json("ledger")["size"] == 3


@pytest.fixture
def readings(monkeypatch) -> list[str]:
    """A line for each time that a request has the ledger's last record read."""
    noted, real = [], Store.head_hash

    def read(store: Store) -> str | None:
        if current_thread().name != "farshift-tables":  # which looks for new records by itself
            noted.append("read")
        return real(store)

    monkeypatch.setattr(Store, "head_hash", read)
    return noted


def test_requests_that_wait_together_share_one_reading_of_the_ledger(own, readings):
    board = ServedBoard(str(own.path))

    async def ask() -> list[History]:
        return await asyncio.gather(*(board.read_history() for _ in range(16)))

    os.utime(own.path / "ledger.sqlite")  # as if a record had just been appended
    assert {history.size for history in asyncio.run(ask())} == {8}
    assert len(readings) == 1


def test_a_ledger_whose_file_was_not_written_is_not_read_again(own, serve, readings):
    served = serve(own.path)
    os.utime(own.path / "ledger.sqlite", (1, 1))
    names = [item["entry"] for _ in range(3) for item in served.json("entries")["entries"]]
    assert len(readings) == 1
    withdraw_entry(own, names[0], "a second thought")
    assert served.json("entries")["entries"][0]["left"]["reason"] == "a second thought"


def test_a_ledger_that_was_changed_is_not_shown(own, serve, caplog):
    served = serve(own.path)
    before = served.json("ledger")["size"]
    with sqlite3.connect(own.path / "ledger.sqlite") as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("DELETE FROM records WHERE seq = (SELECT max(seq) FROM records)")
        database.execute("UPDATE records SET body = '{}' WHERE seq = 2")
    answer = served.get("api/v1/ledger")
    assert (answer.status_code, before) == (503, 8)
    assert "was changed: its hash does not match" in caplog.text, "only the operator sees which record"
    assert served.get("readyz").status_code == 503
