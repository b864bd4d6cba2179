"""Handing in over HTTP, to a real server on loopback."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from farshift.core.errors import BadSubmission, FarshiftError, Unavailable
from farshift.leaderboard.operations.places import submit_at
from farshift.leaderboard.submission.pack import pack

sys.path.insert(0, str(Path(__file__).parent))
from intake import taking_in
from remembering import check
from support import one_line_error


@pytest.fixture(autouse=True)
def _quickly(monkeypatch, remembered):
    monkeypatch.setattr("farshift.leaderboard.submission.remote.check", check)
    monkeypatch.setattr("farshift.core.retry.PAUSE", 0.01)


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory) -> Path:
    return pack(runs[:1], tmp_path_factory.mktemp("packed") / "s.zip", team="us")


@pytest.fixture
def intake(board):
    with taking_in(board) as running:
        yield running


def test_a_submission_is_handed_in_with_its_digest_and_enters_once(intake, file):
    entries, new = submit_at(intake.url, file)
    assert new
    assert [row.entry for row in intake.board.standings()] == entries
    assert submit_at(intake.url + "/", file) == (entries, False)
    assert [request["path"] for request in intake.requests] == ["/api/submissions"] * 2
    assert intake.requests[0]["Content-Type"] == "application/zip"
    assert intake.requests[0]["Content-Digest"].startswith("sha-256=:")


def test_an_answer_that_got_lost_is_asked_for_again_and_the_entry_is_there_once(intake, file):
    intake.faults = ["503", "lost"]
    entries, new = submit_at(intake.url, file)
    assert not new, "it was entered when the answer got lost"
    assert len(intake.requests) == 3
    assert [row.entry for row in intake.board.standings()] == entries


def test_a_server_that_stays_busy_is_given_up(intake, file):
    intake.faults = ["503"] * 9
    with pytest.raises(Unavailable, match="could not be handed in .* in 6 tries .the server answered 503.: try again"):
        submit_at(intake.url, file)
    assert intake.board.standings() == []


def test_problems_that_only_the_board_sees_come_back_one_by_one(intake, file):
    problem = {"name": "value-class", "file": "predictions/0.parquet", "what": "class 97 is none", "remedy": "mend it"}
    answer = {"error": "refused", "problems": [problem, problem | {"column": "prediction", "row": "00ff"}]}
    intake.faults = [(422, {}, json.dumps(answer).encode())]
    with pytest.raises(BadSubmission, match="2 problems: predictions/0.parquet: class 97 is none") as refused:
        submit_at(intake.url, file)
    assert [one.record()["row"] for one in refused.value.problems] == ["", "00ff"]


def test_a_refusal_without_problems_is_told_in_a_line(intake, file, runs, tmp_path):
    submit_at(intake.url, file)
    with pytest.raises(FarshiftError, match="refused it: .* on this board already"):
        submit_at(intake.url, pack(runs[:1], tmp_path / "twin.zip", note="again"))


@pytest.mark.parametrize(
    ("status", "headers", "body", "complaint"),
    [
        (200, {}, b"<html>", "answered 200, and not as a board of Farshift's does"),
        (200, {}, b"{}", "it names no entries"),
        (200, {}, b'{"entries": [3]}', "it names no entries"),
        (403, {}, b'{"detail": "no"}', "answered 403, .* it names no error"),
        (404, {}, b"not here", "answered 404"),
        (307, {"Location": "https://elsewhere.example/"}, b"", "has moved to https://elsewhere.example/"),
        (400, {}, b'{"error": "no\\nline\\u0007"}', "refused it: no.line"),
        (200, {}, b"x" * (2 << 20), "with over 1048576 bytes"),
        (422, {}, b'{"error": "odd", "problems": [{"name": 3}]}', "refused it: odd"),
    ],
)
def test_an_answer_of_something_else_is_told_in_a_line(intake, file, status, headers, body, complaint):
    intake.faults = [(status, headers, body)]
    with pytest.raises(FarshiftError, match=complaint):
        submit_at(intake.url, file)


def test_nothing_that_a_board_would_refuse_is_sent(intake, tmp_path):
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    with pytest.raises(BadSubmission):
        submit_at(intake.url, tmp_path / "bad.zip")
    assert intake.requests == []


def test_no_server_no_network_no_address(file, monkeypatch):
    with pytest.raises(Unavailable, match="could not be handed in"):
        submit_at("http://127.0.0.1:1", file)
    with pytest.raises(FarshiftError, match="a board is a folder, or behind http"):
        submit_at("ssh://host/board", file)
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    with pytest.raises(Unavailable, match="FARSHIFT_OFFLINE is set"):
        submit_at("http://127.0.0.1:1", file)


@pytest.mark.slow
def test_the_commands_hand_in_verify_export_and_say_why_not(intake, file, farshift, farshift_json, tmp_path):
    found = farshift_json("submit", file, "--to", intake.url)
    assert found["new"] is True
    assert farshift_json("submit", file, "--to", intake.board.path) == {
        "board": str(intake.board.path), "entries": found["entries"], "new": False,
    }  # fmt: skip
    export = farshift_json("board", "export", intake.board.path, "--out", tmp_path / "export")
    verified = farshift_json("board", "verify", tmp_path / "export", "--head", export["head"])
    assert verified["verified"] is True
    assert verified["head"] == export["head"]
    shutil.rmtree(tmp_path / "export" / "scores")
    wrong = farshift("board", "verify", tmp_path / "export")
    assert wrong.returncode == 1
    assert "1 entry: 1 difference" in wrong.stdout
    entry = found["entries"][0]
    assert "this option" not in one_line_error(farshift("board", "remove", intake.board.path, entry, "--reason", " "))
    assert farshift_json("board", "remove", intake.board.path, entry, "--reason", "spam")["removed"] == "spam"
    assert "was removed already (spam)" in one_line_error(
        farshift("board", "withdraw", intake.board.path, entry, "--reason", "oh")
    )
    assert farshift_json("board", "rescore", intake.board.path) == {"rescored": [], "left": []}
    assert farshift_json("board", "migrate", intake.board.path)["before"] == "0003"


def test_a_refused_submission_tells_its_problems_one_a_line_or_as_objects(farshift, runs, board, tmp_path):
    twin = shutil.copytree(runs[0], tmp_path / "run")
    (tmp_path / "card.toml").write_text('[model]\ntraining_data = "all"\npretraining = 3\n')
    arguments = ("pack", twin, "--out", tmp_path / "s.zip", "--card", tmp_path / "card.toml")
    told = farshift(*arguments)
    assert "2 problems are listed above" in one_line_error(told)
    assert "model.training_data" in told.stderr
    as_json = farshift(*arguments, "--json")
    assert as_json.returncode == 2
    assert {problem["column"] for problem in json.loads(as_json.stdout)["problems"]} == {
        "model.training_data", "model.pretraining",
    }  # fmt: skip
    assert "[model]" in farshift("pack", "--template").stdout
    assert "name at least one run folder" in one_line_error(farshift("pack"))
