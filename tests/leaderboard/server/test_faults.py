"""What visitors see of a board whose database is out of reach, or whose files were damaged."""

from __future__ import annotations

import pytest
from farshift.leaderboard.entries import get_score_path, get_submission_path
from farshift.leaderboard.server.worker import answer_request


@pytest.mark.attack("visitor", "the database's address or the server's paths, from error messages during an outage")
@pytest.mark.parametrize("path", ["api/v1/", "api/v1/entries", "ledger.jsonl", "readyz"])
def test_an_outage_of_the_database_is_temporary_and_shows_no_address(own, serve, path):
    served = serve(own.path)
    assert served.get("api/v1/").status_code == 200
    (own.path / "ledger.sqlite").write_bytes(b"not a database, for now" * 1000)
    answer = served.get(path)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
    assert not any(text in answer.text for text in (str(own.path.parent), "sqlite", "Traceback", "not a database"))


def test_a_submission_that_an_outage_kept_from_being_scored_shows_no_address(own, packed):
    (own.path / "ledger.sqlite").write_bytes(b"not a database, for now" * 1000)
    sent = dict.fromkeys(("team", "token", "window", "received"), "")
    result = answer_request({"board": str(own.path), "file": str(packed[0]), **sent})
    assert result == {"broke": "the board could not score it (FarshiftError): see the server's log"}


def test_one_damaged_score_fails_its_own_entry_only(own, serve):
    good, damaged, *_ = own.standings()
    served = serve(own.path)
    (own.path / get_score_path(damaged.entry, damaged.score.scorer)).write_text("{}")
    page = served.json("entries")
    assert page["damaged"] == [damaged.entry]
    assert good.entry in [item["entry"] for item in page["entries"]]


def test_a_file_is_sent_as_immutable_only_if_it_has_the_digest_of_its_record(own, serve):
    served, path = serve(own.path), get_submission_path(own.standings()[0].submission)
    assert "immutable" in served.get(path).headers["Cache-Control"]
    content = (own.path / path).read_bytes()
    (own.path / path).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    answer = served.get(path)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (404, "no-store")
    (own.path / path).write_bytes(content)
    assert served.get(path).content == content
