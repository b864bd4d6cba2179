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
from farshift.leaderboard.server import models
from farshift.leaderboard.tables.snapshot import take_snapshot


@pytest.fixture(scope="module")
def board(filled) -> Board:
    return Board(filled)


def test_the_start_says_which_board_it_is_and_where_its_parts_are(site, board):
    result = models.Start.model_validate(site.json(""))
    assert (result.name, result.key, result.read_only, result.entries) == (board.name, board.ledger.key, False, 3)
    assert result.head.hash == board.records()[-1].hash
    for where in result.links.values():
        assert site.get("api/v1/" + where).status_code == 200, where


def test_standings_are_those_of_the_command_line(site, board):
    result = site.json("standings")
    assert result == json.loads(json.dumps(take_snapshot(board).record()))
    models.Standings.model_validate(result)


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


def test_benchmarks_and_tables_are_those_with_entries(site):
    result = models.Benchmarks.model_validate(site.json("benchmarks"))
    assert {item.benchmark: item.entries for item in result.benchmarks} == {"modadd97/xi35": 1, "scan/length": 1}
    listed = models.Tables.model_validate(site.json("tables"))
    assert [item.identity for item in listed.tables] == [name for item in result.benchmarks for name in item.tables]
    for item in listed.tables:
        full = models.TableFound.model_validate(site.json("tables/" + item.identity[:12]))
        assert (full.table.identity, len(full.table.rows)) == (item.identity, item.entries)
    assert site.get("api/v1/tables/00000000").status_code == 404


def test_entries_are_listed_a_page_at_a_time(site, board):
    every = models.Entries.model_validate(site.json("entries"))
    names = [item.entry for item in every.entries]
    assert names == list(read_valid_entries(board.records()))
    seen, cursor = [], ""
    while cursor is not None:
        page = models.Entries.model_validate(site.json("entries", limit=1, cursor=cursor))
        seen += [item.entry for item in page.entries]
        cursor = page.next
    assert seen == names
    first = site.get("api/v1/entries", params={"limit": 2})
    assert f"cursor={names[1]}" in first.headers["Link"]
    assert site.get("api/v1/entries", params={"cursor": "0" * 16}).status_code == 404


@pytest.mark.parametrize(
    ("wanted", "models_found"),
    [
        ({"benchmark": "scan/length"}, ["echo"]),
        ({"kind": "length"}, ["echo"]),
        ({"team": "team good"}, ["good"]),
        ({"model": "worse <b>"}, ["worse <b>"]),
        ({"model": "worse <b>", "benchmark": "scan/length"}, []),
    ],
)
def test_entries_are_filtered(site, wanted, models_found):
    assert [item["model"] for item in site.json("entries", **wanted)["entries"]] == models_found


def test_an_entry_has_its_row_its_score_and_its_submission(site, board):
    (standing, *_) = board.standings()
    result = models.EntryFound.model_validate(site.json(f"entries/{standing.entry}"))
    assert result.row is not None
    assert result.entry.ood == result.row.ood["value"] == standing.score.ood.value
    assert site.get(f"api/v1/entries/{standing.entry}/score").content == board.read_file(
        standing.scores[-1].path, standing.scores[-1].digest
    )
    last = site.get(f"api/v1/entries/{standing.entry}/score", params={"scorer": standing.score.scorer})
    assert "immutable" in last.headers["Cache-Control"]
    assert site.get(f"api/v1/entries/{standing.entry}/score", params={"scorer": 99}).status_code == 404
    left = models.EntryFound.model_validate(site.json(f"entries/{board.removed_entries()[0].entry}"))
    assert left.row is None
    assert left.entry.left["reason"] == "a bug in our loader"
    assert site.get("api/v1/entries/" + "0" * 16).json() == {"error": f"entry {'0' * 16} is not on this board"}


def test_a_submission_comes_with_its_digest_and_in_ranges(site, board):
    (standing, *_) = board.standings()
    content = (board.path / get_submission_path(standing.submission)).read_bytes()
    where = f"api/v1/entries/{standing.entry}/submission"
    full = site.get(where)
    assert full.content == content
    assert full.headers["Repr-Digest"] == f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"
    assert full.headers["Content-Type"] == "application/zip"
    assert full.headers["Content-Disposition"].startswith("attachment")
    part = site.get(where, headers={"Range": "bytes=5-9"})
    assert (part.status_code, part.content) == (206, content[5:10])
    assert part.headers["Content-Range"] == f"bytes 5-9/{len(content)}"
    assert site.get(where, headers={"Range": f"bytes={len(content)}-"}).status_code == 416
    assert site.get(where, headers={"If-None-Match": full.headers["ETag"]}).status_code == 304


def test_teams_are_those_that_submitted(site):
    result = models.Teams.model_validate(site.json("teams"))
    assert [(item.team, item.entries, item.models) for item in result.teams] == [
        ("team echo", 1, ["echo"]),
        ("team good", 1, ["good"]),
        ("team worse", 1, ["worse <b>"]),
    ]


def test_a_board_without_windows_has_none(site):
    assert models.Windows.model_validate(site.json("windows")).windows == []
    assert site.get("api/v1/windows/none").status_code == 404
    assert site.get("api/v1/windows/none/draw/inputs.parquet").status_code == 404
    assert site.get("api/v1/windows/none/draw/labels.parquet").status_code == 422


@pytest.mark.parametrize("path", ["entries?limit=0", "entries?limit=x", "ledger?page=-1", "ledger?page=x"])
def test_a_parameter_that_is_none_is_named_in_one_line(site, path):
    answer = site.get("api/v1/" + path)
    assert answer.status_code == 422
    models.Failure.model_validate(answer.json())
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
