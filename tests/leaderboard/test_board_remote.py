"""Handing in over HTTP, to a real server on loopback."""

from __future__ import annotations

import json
import shutil

import httpx2
import pytest
from farshift import FarshiftError
from farshift.core.errors import BadSubmission, Unavailable
from farshift.core.progress import report_to
from farshift.core.retry import TRIES
from farshift.leaderboard.operations.submit import submit_at
from farshift.leaderboard.server.accounts import create_token
from farshift.leaderboard.submission import remote
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.submission.remote import find_token
from intake import score_here, taking_in, working
from remembering import check
from support import Heard, one_line_error


@pytest.fixture(autouse=True)
def _quickly(monkeypatch, remembered):
    monkeypatch.setattr("farshift.leaderboard.submission.remote.validate_submission", check)
    monkeypatch.setattr("farshift.core.retry.PAUSE", 0.01)
    monkeypatch.setattr("farshift.leaderboard.server.worker._IDLE", 0.01)


@pytest.fixture
def intake(board, monkeypatch):
    """A server whose worker works, and a user with a token for it."""
    with taking_in(board, score_here) as running, working(running):
        monkeypatch.setenv("FARSHIFT_TOKEN", running.token)
        yield running


def said(state, **others):
    """The state of a submission as a server says it."""
    return {"id": "ab", "state": state, "entries": [], "problems": [], "reason": "", **others}


def test_a_submission_is_handed_in_with_its_digest_and_enters_once(intake, file):
    entries, new = submit_at(intake.url, file)
    assert new
    assert [row.entry for row in intake.board.standings()] == entries
    assert submit_at(intake.url + "/", file) == (entries, False)
    posts = [request for request in intake.requests if request["method"] == "POST"]
    assert [request["path"] for request in posts] == ["/api/v1/submissions"] * 2
    assert posts[0]["content-type"] == "application/zip"
    assert posts[0]["content-digest"].startswith("sha-256=:")
    requested = [request for request in intake.requests if request["method"] == "GET"]
    assert requested and not any(intake.token in str(request) for request in requested), "the id is all that is needed"


def test_an_answer_that_got_lost_is_asked_for_again_and_the_entry_is_there_once(intake, file):
    intake.faults = ["503", "lost"]
    entries, new = submit_at(intake.url, file)
    assert not new, "it was taken in when the answer got lost"
    assert sum(request["method"] == "POST" for request in intake.requests) == 3
    assert [row.entry for row in intake.board.standings()] == entries


def test_a_file_that_was_cut_off_is_sent_again_whole_and_is_one_submission(intake, file, monkeypatch):
    monkeypatch.setattr(remote, "_BLOCK", 1000)
    blocks, cuts = remote._read_blocks, [httpx2.WriteError("the line is dead"), KeyboardInterrupt()]

    def broken(file):
        for number, block in enumerate(blocks(file)):
            if cuts and number == 2:
                raise cuts.pop(0)
            yield block

    monkeypatch.setattr(remote, "_read_blocks", broken)
    with pytest.raises(KeyboardInterrupt):
        submit_at(intake.url, file)
    assert intake.state.queue.jobs() == []
    entries, new = submit_at(intake.url, file)
    assert new
    assert submit_at(intake.url, file) == (entries, False)
    assert [row.entry for row in intake.board.standings()] == entries
    assert len(intake.state.queue.jobs()) == 1


def test_a_server_that_stays_busy_is_given_up(intake, file):
    intake.faults = ["503"] * 9
    with pytest.raises(Unavailable, match="could not be submitted .* in 6 tries .the server answered 503.: try again"):
        submit_at(intake.url, file)
    assert intake.board.standings() == []


def test_problems_that_only_the_board_sees_come_back_one_by_one(intake, file):
    problem = {"name": "value-class", "file": "predictions/0.parquet", "what": "class 97 is none", "remedy": "mend it"}
    answer = said("refused", reason="refused", problems=[problem, problem | {"column": "prediction", "row": "00ff"}])
    intake.faults = [(202, {}, json.dumps(answer).encode())]
    with pytest.raises(BadSubmission, match="2 problems: predictions/0.parquet: class 97 is none") as refused:
        submit_at(intake.url, file)
    assert [item.row for item in refused.value.problems] == ["", "00ff"]


def test_a_refusal_without_problems_is_told_in_a_line(intake, file, runs, tmp_path):
    submit_at(intake.url, file)
    with pytest.raises(FarshiftError, match="refused it: .* is the same run as entry"):
        submit_at(intake.url, pack_runs(runs[:1], tmp_path / "twin.zip", team="us", note="again"))


@pytest.mark.parametrize(
    ("status", "headers", "body", "complaint"),
    [
        (200, {}, b"<html>", "answered 200, but is not a Farshift board: its answer is not a JSON object"),
        (200, {}, b"{}", "id is missing or invalid"),
        (200, {}, json.dumps(said("entered", entries=[3])).encode(), "entries is missing or invalid"),
        (200, {}, json.dumps(said("failed", reason="no\nmemory")).encode(), "could not score it .no.: submit it again"),
        (403, {}, b'{"detail": "no"}', "answered 403, .* error is missing"),
        (404, {}, b"not here", "answered 404"),
        pytest.param(
            *(307, {"Location": "http://127.0.0.1:1/"}, b"", "has moved to http://127.0.0.1:1/"),
            marks=pytest.mark.attack("host", "a server that redirects a request, to pass its token to another server"),
        ),
        (400, {}, b'{"error": "no\\nline\\u0007"}', "refused it: no.line"),
        (200, {}, b"x" * (2 << 20), "with over 1048576 bytes"),
        (422, {}, b'{"error": "odd", "problems": [{"name": 3}]}', "refused it: odd"),
    ],
)
def test_an_answer_of_something_else_is_told_in_a_line(intake, file, status, headers, body, complaint):
    intake.faults = [(status, headers, body)]
    with pytest.raises(FarshiftError, match=complaint) as refused:
        submit_at(intake.url, file)
    assert intake.token not in str(refused.value)


def test_nothing_that_a_board_would_refuse_is_sent(intake, tmp_path):
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    with pytest.raises(BadSubmission):
        submit_at(intake.url, tmp_path / "bad.zip")
    assert intake.requests == []


def test_a_team_of_another_token_is_a_problem_as_pack_tells_them(intake, file, monkeypatch):
    monkeypatch.setenv("FARSHIFT_TOKEN", create_token(intake.board.ledger.store, "them")[0])
    with pytest.raises(
        BadSubmission, match="names the team 'us', but the token is for 'them' .pack it for the team of"
    ):
        submit_at(intake.url, file)


def test_a_token_is_given_or_in_the_environment_and_never_sent_in_the_clear(monkeypatch):
    monkeypatch.delenv("FARSHIFT_TOKEN", raising=False)
    assert find_token("https://board.example.org") == ""
    monkeypatch.setenv("FARSHIFT_TOKEN", "fs_kept")
    assert find_token("https://board.example.org/") == "fs_kept"
    assert find_token("http://localhost:1", "fs_given") == find_token("http://[::1]:1", "fs_given") == "fs_given"
    for url in ("http://board.example.org", "http://127.0.0.1.example.org", "http://localhost.example.org"):
        with pytest.raises(FarshiftError, match="only sent over https, or to this machine"):
            find_token(url, "fs_given")
    with pytest.raises(FarshiftError, match="the token has invalid characters") as refused:
        find_token("https://board.example.org", "fs_a secret")
    assert "secret" not in str(refused.value)


def test_no_server_no_network_no_address(file, monkeypatch):
    with pytest.raises(Unavailable, match="could not be submitted"):
        submit_at("http://127.0.0.1:1", file)
    with pytest.raises(FarshiftError, match="a board is a folder, or a URL with http"):
        submit_at("ssh://host/board", file)
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    with pytest.raises(Unavailable, match="FARSHIFT_OFFLINE is set"):
        submit_at("http://127.0.0.1:1", file)


def test_each_try_is_told_with_its_reason(file):
    with report_to(heard := Heard()), pytest.raises(Unavailable, match="could not be submitted"):
        submit_at("http://127.0.0.1:1", file)
    assert [line.rpartition(", ")[2] for line in heard.lines] == [
        f"try {item} of {TRIES}" for item in range(2, TRIES + 1)
    ]
    assert f"{file} could not be submitted to http://127.0.0.1:1/api/v1/submissions (" in heard.lines[0]
    assert "refused): trying again in " in heard.lines[0]


def test_who_has_no_token_is_told_how_to_give_one(intake, file, monkeypatch):
    monkeypatch.delenv("FARSHIFT_TOKEN")
    with pytest.raises(
        FarshiftError, match=r"a token of your team is required.*; give it with --token or as FARSHIFT_TOKEN"
    ):
        submit_at(intake.url, file)
    with pytest.raises(FarshiftError, match="this board does not know the token$"):
        submit_at(intake.url, file, "fs_" + "A" * 43)


@pytest.mark.slow
def test_the_commands_hand_in_verify_export_and_say_why_not(intake, file, command, farshift, monkeypatch, tmp_path):
    def as_json(*arguments: object):
        done = command(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    accepted = as_json("submit", file, "--to", intake.url, "--no-wait")
    assert (accepted["state"], accepted["new"]) == ("queued", True)
    with monkeypatch.context() as without:
        without.setenv("FARSHIFT_TOKEN", "")
        result = as_json("submit", file, "--to", intake.url, "--token", intake.token)
    assert result["new"] is False
    again = as_json("submit", file, "--to", intake.url, "--no-wait")
    assert (again["id"], again["state"], again["entries"]) == (accepted["id"], "entered", result["entries"])
    assert "entered" in farshift("board", "work", intake.board.path, "--queue").stdout
    other = as_json("board", "token", "create", intake.board.path, "--team", "them", "--expires", "9d")
    assert other["token"].startswith("fs_")
    refused = command("submit", file, "--to", intake.url, "--token", other["token"])
    assert "names the team 'us', but the token is for 'them'" in one_line_error(refused)
    assert other["token"] not in refused.stdout + refused.stderr
    gone = as_json("board", "token", "revoke", intake.board.path, other["id"])
    assert [item["state"] for item in as_json("board", "token", "list", intake.board.path)] == [
        "valid",
        "revoked",
    ]
    assert gone["revoked"] is not None
    assert json.loads(farshift("board", "work", intake.board.path, "--once", "--json").stdout)["ended"] == 0
    assert as_json("submit", file, "--to", intake.board.path) == {
        "board": str(intake.board.path), "entries": result["entries"], "new": False,
    }  # fmt: skip
    export = as_json("board", "export", intake.board.path, "--out", tmp_path / "export")
    verified = as_json("board", "verify", tmp_path / "export", "--head", export["head"])
    assert verified["verified"] is True
    assert verified["head"] == export["head"]
    shutil.rmtree(tmp_path / "export" / "scores")
    wrong = command("board", "verify", tmp_path / "export")
    assert wrong.returncode == 1
    assert "1 entry: 1 difference" in wrong.stdout
    entry = result["entries"][0]
    assert "this option" not in one_line_error(
        command("board", "withdraw", intake.board.path, entry, "--by-board", "--reason", " ")
    )
    assert as_json("board", "withdraw", intake.board.path, entry, "--by-board", "--reason", "spam")["removed"] == "spam"
    assert "was already removed (spam)" in one_line_error(
        command("board", "withdraw", intake.board.path, entry, "--reason", "oh")
    )
    assert as_json("board", "rescore", intake.board.path) == {"rescored": [], "left": []}


def test_a_refused_submission_tells_its_problems_one_a_line_or_as_objects(command, runs, tmp_path):
    twin = shutil.copytree(runs[0], tmp_path / "run")
    (tmp_path / "card.toml").write_text('[model]\ntraining_data = "all"\npretraining = 3\n')
    arguments = ("pack", twin, "--out", tmp_path / "s.zip", "--card", tmp_path / "card.toml")
    output = command(*arguments)
    assert "2 problems are listed above" in one_line_error(output)
    assert "model.training_data" in output.stderr
    as_json = command(*arguments, "--json")
    assert as_json.returncode == 2
    assert {problem["column"] for problem in json.loads(as_json.stdout)["problems"]} == {
        "model.training_data", "model.pretraining",
    }  # fmt: skip
    assert "[model]" in command("pack", "--template").stdout
    assert "name at least one run folder" in one_line_error(command("pack"))
