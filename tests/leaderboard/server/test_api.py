"""The API's answers, against the board that they are of."""

from __future__ import annotations

import csv
import io
import json
from base64 import b64encode
from hashlib import sha256

import pyarrow.parquet as pq
import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.entries import get_submission_path, read_valid_entries
from farshift.leaderboard.exports import make_export_files
from farshift.leaderboard.server import read_api
from farshift.leaderboard.tables.snapshot import take_snapshot


@pytest.fixture(scope="module")
def board(filled) -> Board:
    return Board(filled)


def test_the_start_says_which_board_it_is_and_where_its_parts_are(site, board):
    result = read_api.Start.model_validate(site.json(""))
    assert (result.name, result.key, result.read_only, result.entries) == (board.name, board.ledger.key, False, 3)
    assert result.head.hash == board.records()[-1].hash
    for where in result.links.values():
        assert site.get("api/v1/" + where).status_code == 200, where


def test_standings_are_those_of_the_command_line(site, board):
    result = site.json("standings")
    assert result == json.loads(json.dumps(take_snapshot(board).record()))
    read_api.Standings.model_validate(result)


def test_standings_come_as_the_exports_write_them(site, board):
    text = site.get("api/v1/standings.csv")
    assert text.headers["Content-Type"].startswith("text/csv")
    assert text.content == make_export_files(take_snapshot(board), "csv")["standings.csv"]
    rows = list(csv.DictReader(io.StringIO(text.text)))
    table = pq.read_table(io.BytesIO(site.get("api/v1/standings.parquet").content))
    assert table.column_names == list(rows[0])
    assert [row["entry"] for row in rows] == table["entry"].to_pylist()
    assert [float(row["ood"]) for row in rows] == table["ood"].to_pylist()
    assert [row["steps"] or None for row in rows] == table["steps"].to_pylist()


def test_entries_are_listed_in_the_ledgers_order_with_their_newest_score(site, board):
    every = read_api.Entries.model_validate(site.json("entries"))
    assert [item.entry for item in every.entries] == list(read_valid_entries(board.records()))
    (standing, *_) = board.standings()
    (item,) = [item for item in every.entries if item.entry == standing.entry]
    assert (item.ood, item.left) == (standing.score.ood.value, None)
    (gone,) = [item for item in every.entries if item.entry == board.removed_entries()[0].entry]
    assert gone.left["reason"] == "a bug in our loader"


def test_a_submission_comes_with_its_digest_and_in_ranges(site, board):
    where = get_submission_path(board.standings()[0].submission)
    content, full = (board.path / where).read_bytes(), site.get(where)
    assert full.content == content
    assert full.headers["Repr-Digest"] == f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"
    assert full.headers["Content-Type"] == "application/zip"
    part = site.get(where, headers={"Range": "bytes=5-9"})
    assert (part.status_code, part.content) == (206, content[5:10])
    assert part.headers["Content-Range"] == f"bytes 5-9/{len(content)}"
    assert site.get(where, headers={"Range": f"bytes={len(content)}-"}).status_code == 416
    assert site.get(where, headers={"If-None-Match": full.headers["ETag"]}).status_code == 304


def test_a_board_without_windows_has_none(site):
    assert read_api.Windows.model_validate(site.json("windows")).windows == []


def test_what_is_not_there_and_a_parameter_that_is_none_are_named_in_one_line(site):
    for path, status in (("nothing", 404), ("compare", 422), ("compare?entry=x&entry=y", 404)):
        answer = site.get("api/v1/" + path)
        assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
        assert "\n" not in answer.json()["error"]


def test_the_openapi_document_describes_every_answer(site):
    result = site.get("api/v1/openapi.json").json()
    assert {path for path in result["paths"] if not path.startswith("/api/v1/")} == set()
    for path, methods in result["paths"].items():
        for operation in methods.values():
            assert operation["summary"], path
        if "get" in methods and methods["get"]["tags"] != ["submit"]:
            assert "content" in methods["get"]["responses"].get("200", {"content": {}}), path
    assert "http" not in json.dumps(result["servers"])
