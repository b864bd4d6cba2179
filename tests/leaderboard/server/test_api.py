"""The API's answers, against the board that they are of."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256

import pytest
import schemathesis
from farshift.leaderboard.board import Board
from farshift.leaderboard.client import BoardEntry
from farshift.leaderboard.entries import get_submission_path, read_valid_entries
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.tables.snapshot import take_snapshot
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def board(filled) -> Board:
    return Board(filled)


def test_the_start_says_which_board_it_is_and_where_its_parts_are(site, board):
    result = site.json("")
    assert (result["name"], result["key"], result["entries"]) == (board.name, board.ledger.key, 3)
    assert result["head"]["hash"] == board.records()[-1].hash
    for where in result["links"].values():
        assert site.get("api/v1/" + where).status_code == 200, where


def test_standings_are_those_of_the_command_line(site, board):
    result = site.json("standings")
    assert result == json.loads(json.dumps(take_snapshot(board).record()))


def test_entries_are_listed_in_the_ledgers_order_with_their_newest_score(site, board):
    every = [BoardEntry.model_validate(item) for item in site.json("entries")["entries"]]
    assert [item.entry for item in every] == list(read_valid_entries(board.records()))
    (standing, *_) = board.standings()
    (item,) = [item for item in every if item.entry == standing.entry]
    assert (item.ood, item.left) == (standing.score.ood.value, None)
    (gone,) = [item for item in every if item.entry == board.removed_entries()[0].entry]
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


CASES = 25


@schemathesis.serializer("application/zip", "application/octet-stream")
def as_it_is(context, value) -> bytes:
    """Bytes that are no zip file, mostly."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def operations(site) -> list:
    schema = schemathesis.openapi.from_url(f"{site.url}/api/v1/openapi.json")
    return [result.ok() for result in schema.get_all_operations()]


def ask(site, operation) -> None:
    """Send what the document allows an operation to be sent."""

    @settings(
        max_examples=CASES,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def asked(data):
        case = data.draw(operation.as_strategy())
        answer = case.call(base_url=site.url)
        assert answer.status_code < 500, (case.method, case.formatted_path, answer.text)

    asked()


@pytest.mark.slow
def test_no_request_that_the_document_allows_breaks_the_server(site):
    site.until(lambda: site.get("readyz").status_code == 200)
    every = operations(site)
    assert len(every) >= 9
    for operation in every:
        ask(site, operation)
