"""`farshift.Board`: the same answers of a folder, of an export and of a server; and what is held to the ledger."""

from __future__ import annotations

import json
import shutil

import farshift as fs
import pytest
from farshift import FarshiftError
from farshift.core.errors import UnknownName
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.submit import withdraw_entry
from farshift.leaderboard.server.served_board import History


def told(board: fs.Board) -> list[object]:
    """All that a board says, as plain JSON."""
    entries = board.entries()
    output = [board.name, board.standings().record(), entries.to_dicts(), board.entry(entries[0].entry).to_dict()]
    output += [board.entries(kind="length").to_dicts(), board.entries(team="team good").to_dicts(), board.windows()]
    output += [board.entries(model="good", benchmark="modadd97/xi35").to_dicts()]
    return json.loads(json.dumps(output))


def test_a_folder_an_export_and_a_server_say_the_same(site, filled, tmp_path):
    export_board(Board(filled), tmp_path / "public")
    of_folder = told(fs.Board(filled))
    assert told(fs.Board(tmp_path / "public")) == of_folder
    assert told(fs.Board(site.url + "/")) == of_folder
    assert [len(item) for item in of_folder[2:3]] == [3]
    assert [item["model"] for item in of_folder[4]] == ["echo"]


def test_standings_of_a_server_are_a_data_frame(site, filled):
    pytest.importorskip("pandas")
    remote, local = fs.Board(site.url).standings(), fs.Board(filled).standings()
    assert remote.to_pandas()["entry"].tolist() == local.to_pandas()["entry"].tolist()
    assert "&lt;b&gt;test" in remote._repr_html_()
    assert len(fs.Board(site.url).standings("scan/length").record()["tables"]) == 1


@pytest.mark.parametrize("where", ["folder", "server"])
def test_an_entry_or_a_benchmark_that_is_not_there_is_named(site, filled, where):
    board = fs.Board(filled if where == "folder" else site.url)
    with pytest.raises((UnknownName, FarshiftError), match="0000000000000000"):
        board.entry("0" * 16)
    with pytest.raises(UnknownName, match="no benchmark of the board's entries named 'scan/lenght': did you mean"):
        board.standings("scan/lenght")
    with pytest.raises(UnknownName):
        board.entry("../ledger")


def test_a_board_that_grew_is_read_on(own, serve):
    served = serve(own.path)
    board = fs.Board(served.url)
    assert [item.left for item in board.entries()].count(None) == 2
    withdraw_entry(own, own.standings()[0].entry, "a second thought")
    assert [item.left for item in board.entries()].count(None) == 1
    assert [item.left for item in fs.Board(served.url).entries()].count(None) == 1


def test_a_history_that_does_not_extend_what_was_seen_is_refused(own, serve, tmp_path):
    """The board's own key signs two histories; this user was shown one of them."""
    other = Board(shutil.copytree(own.path, tmp_path / "other"))
    names = [item.entry for item in own.standings()]
    withdraw_entry(own, names[0], "one history")
    withdraw_entry(other, names[1], "another history")
    withdraw_entry(other, names[0], "and on")
    older = Board(shutil.copytree(own.path, tmp_path / "older"))
    withdraw_entry(own, names[1], "and on")
    assert len(fs.Board(serve(own.path).url).entries()) == 3
    with pytest.raises(FarshiftError, match="the history was rewritten"):
        fs.Board(serve(other.path).url).entries()
    with pytest.raises(FarshiftError, match="the ledger has 9 records, but on .* this user saw 10"):
        fs.Board(serve(older.path).url).standings()


def test_an_answer_that_counts_a_record_which_is_not_in_the_ledger_is_refused(own, serve):
    served = serve(own.path)
    published = served.app.state.published
    real = published.history()
    forged = [*real.records[:-1], real.records[-1].__class__(**{**real.records[-1].__dict__, "hash": "ab" * 32})]
    locked = History(forged)
    published.history = lambda: locked
    with pytest.raises(FarshiftError, match="was changed: its hash does not match"):
        fs.Board(served.url).entries()
    export = published.export
    published.export = lambda path: real.lines if path == "ledger.jsonl" else export(path)
    with pytest.raises(FarshiftError, match="a response refers to record 7, which is not in the server's ledger"):
        fs.Board(served.url).entries()


def test_another_board_at_an_address_that_was_seen_is_refused(own, serve, tmp_path):
    served = serve(own.path)
    assert fs.Board(served.url).name
    stranger = Board.init(tmp_path / "stranger", "Another")
    published = served.app.state.published
    locked = History(stranger.records())
    published.board, published.history = stranger, lambda: locked
    with pytest.raises(FarshiftError, match="had the key .* when this user first read it"):
        fs.Board(served.url).entries()
