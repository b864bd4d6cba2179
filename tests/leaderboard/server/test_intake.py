"""Handing in over HTTP: acknowledged on the disk, scored once, refused in words."""

from __future__ import annotations

import errno
import time
from base64 import b64encode
from hashlib import sha256

import pytest
from farshift.core.errors import BadDefinition
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.server.accounts import create_token, revoke_token
from farshift.leaderboard.server.app import shorten_logged_path
from farshift.leaderboard.server.files import sweep_files
from farshift.leaderboard.submission.pack import pack_runs
from intake import score_here, taking_in

pytestmark = pytest.mark.usefixtures("remembered")


@pytest.fixture
def intake(board):
    with taking_in(board, score_here) as running:
        yield running


def test_a_submission_is_queued_on_the_disk_then_entered_once(intake, file):
    content = file.read_bytes()
    digest = b64encode(sha256(content).digest()).decode()
    accepted = intake.post(content, Content_Digest=f"sha-256=:{digest}:")
    assert accepted.status_code == 202
    output = accepted.json()
    assert (output["state"], output["position"], output["digest"]) == ("queued", 1, sha256(content).hexdigest())
    assert intake.list_files() == [f"{output['id']}.zip"]
    assert accepted.headers["Location"] == f"submissions/{output['id']}"
    again = intake.post(content)
    assert (again.status_code, again.json()["id"]) == (200, output["id"])
    assert intake.list_files() == [f"{output['id']}.zip"]
    waiting = intake.get(output["id"])
    assert (waiting.json()["state"], waiting.headers["Retry-After"]) == ("queued", "1")
    assert intake.work() == 1
    entered = intake.get(output["id"]).json()
    assert entered["state"] == "entered"
    assert [row.entry for row in intake.board.standings()] == entered["entries"]
    assert intake.list_files() == []
    assert intake.post(content).json()["entries"] == entered["entries"], "known, and not scored again"
    assert intake.work() == 0
    result = verify_board(intake.board)
    assert result.differences == [] == result.not_recomputed


def test_the_same_file_again_also_after_a_cut_connection_is_one_submission(intake, file):
    content = file.read_bytes()
    length = f"Content-Length: {len(content)}"
    with intake.begin(content[: len(content) // 2], length):
        while not intake.list_files():
            time.sleep(0.01)
    while intake.list_files():  # the server notices that the client went
        time.sleep(0.01)
    assert intake.state.queue.jobs() == [], "half a file is nothing"
    with intake.begin(content, length):
        while not intake.state.queue.jobs():
            time.sleep(0.01)  # nobody hears the answer
    again = [intake.post(content) for _ in range(2)]
    (job,) = intake.state.queue.jobs()
    assert [(item.status_code, item.json()["id"]) for item in again] == [(200, job.id)] * 2
    while intake.list_files() != [f"{job.id}.zip"]:
        time.sleep(0.01)
    assert intake.work() == 1
    assert intake.state.queue.find(job.id).state == "entered"
    assert len(intake.board.standings()) == 1


def test_a_submission_that_does_not_validate_says_its_problems_as_pack_does(intake):
    output = intake.post(b"no zip").json()
    assert intake.work() == 1
    refused = intake.get(output["id"]).json()
    assert refused["state"] == "refused"
    assert [problem["name"] for problem in refused["problems"]] == ["zip-unreadable"]
    assert refused["reason"].startswith("the submission: not a readable zip")
    assert intake.list_files() == []


def test_a_run_of_another_submission_is_refused_in_a_line(intake, file, runs, tmp_path):
    intake.post(file.read_bytes())
    twin = intake.post(pack_runs(runs[:1], tmp_path / "twin.zip", team="us", note="again").read_bytes()).json()
    assert intake.work() == 2
    result = intake.get(twin["id"]).json()
    assert (result["state"], result["problems"]) == ("refused", [])
    assert "is the same run as entry" in result["reason"]
    assert str(tmp_path.parent) not in result["reason"]


@pytest.mark.attack("entrant", "submissions under another team's name, with one's own token")
def test_a_token_hands_in_for_its_own_team_only(intake, runs, tmp_path):
    theirs = intake.post(pack_runs(runs[:1], tmp_path / "theirs.zip", team="them").read_bytes()).json()
    assert intake.work() == 1
    (problem,) = intake.get(theirs["id"]).json()["problems"]
    assert problem["name"] == "team-other"
    assert "names the team 'them', but the token is for 'us'" in problem["what"]
    assert intake.board.standings() == []


@pytest.mark.attack("entrant", "missing, invented, revoked and expired tokens")
def test_only_a_valid_token_hands_in(intake, file):
    store = intake.board.ledger.store
    revoked, built = create_token(store, "us")
    revoke_token(store, built.id)
    old, built = create_token(store, "us", expires="1d")
    with store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE tokens SET expires = 1 WHERE id = '{built.id}'")
    cases = [
        ("", 401, "a token of your team is required"),
        ("Bearer fs_" + "A" * 43, 401, "does not know the token"),
        ("Bearer ' OR 1=1 --", 401, "does not know the token"),
        (f"Basic {intake.token}", 401, "does not know the token"),
        (f"Bearer {revoked}", 401, "this token is revoked"),
        (f"Bearer {old}", 401, "this token is expired"),
    ]
    for given, status, why in cases:
        answer = intake.post(file.read_bytes(), "", **({"Authorization": given} if given else {}))
        assert answer.status_code == status, given
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert why in answer.json()["error"]
        assert answer.json()["status"] == status
    assert intake.state.queue.jobs() == []


@pytest.mark.attack("visitor", "guessed ids of submissions")
def test_an_id_is_not_guessed(intake):
    for id in ("1", "0" * 64, "..%2f..%2fprivate%2fkey.pem", "%00", "x" * 5000):
        assert intake.get(id).status_code == 404
    ids = {intake.post(bytes([number])).json()["id"] for number in range(3)}
    assert all(len(id) == 64 for id in ids)


@pytest.mark.attack("visitor", "request bodies that are too large, empty, truncated, or of a wrong type or digest")
def test_a_body_that_cannot_be_a_submission_is_refused_and_leaves_nothing(board, file):
    with taking_in(board, score_here, submission_bytes=1000) as intake:

        def endless():
            for _ in range(100):
                yield b"x" * 64

        for answer, status in [
            (intake.post(b"x" * 1001), 413),
            (intake.post(endless()), 413),  # it states no length
            (intake.post(b""), 400),
            (intake.post(b"x", Content_Digest="sha-256=:AAAA:"), 400),
            (intake.post(b"x", Content_Digest=f"sha-256=:{'A' * 43}=:"), 400),
            (intake.post(b"x", Content_Type="text/plain"), 415),
        ]:
            assert answer.status_code == status
            assert answer.json()["error"]
        intake.begin(b"half", "Content-Length: 500").close()
        with intake.begin(b"", f"X-Long: {'x' * 200_000}") as line:
            assert b" 4" in line.recv(100)[:14]
        while intake.list_files() != []:  # the server notices that the client went
            time.sleep(0.05)
        assert intake.state.queue.jobs() == []


def test_a_disk_that_is_full_before_or_while_a_file_comes_takes_nothing_in(intake, file, monkeypatch):
    content = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("farshift.leaderboard.server.files.SPARE", 1 << 60)
        full = intake.post(content)
    assert (full.status_code, full.headers["Retry-After"]) == (507, "600")

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("farshift.leaderboard.server.submissions.os.fsync", no_room)
        full = intake.post(content)
    assert (full.status_code, full.headers["Retry-After"]) == (503, "10")
    assert intake.list_files() == []
    assert intake.state.queue.jobs() == []
    assert intake.post(content).status_code == 202


@pytest.mark.attack("visitor", "request bodies that arrive slowly, or never")
def test_a_body_that_does_not_come_is_given_up(board):
    with taking_in(board, score_here, silence_seconds=0.2, slowest_bytes_a_second=1000) as intake:
        for pieces in ([], [b"x"] * 1000):
            with intake.begin(b"begin", "Content-Length: 5000") as line:
                line.settimeout(0.01)
                got = b""
                for piece in [*pieces, *[b""] * 100_000]:
                    try:
                        line.sendall(piece)
                        got = line.recv(4096)
                        break
                    except TimeoutError:
                        pass
                assert got.startswith(b"HTTP/1.1 408")
        assert intake.list_files() == []


def test_quotas_say_when_to_come_again(board, file):
    with taking_in(board, score_here, submissions_a_day=1) as intake:
        assert intake.post(b"x").status_code == 202
        answer = intake.post(b"y")
        assert answer.status_code == 429
        assert 86000 < int(answer.headers["Retry-After"]) <= 86400
        assert "a team may submit 1 times in 24 hours" in answer.json()["error"]


def test_an_unknown_setting_is_named(board):
    with (
        pytest.raises(BadDefinition, match="settings.toml: server.upload_days: no such key"),
        taking_in(board, upload_days=1),
    ):
        pass


def test_an_open_board_takes_submissions_without_a_token(board, file):
    with taking_in(board, score_here, open=True) as intake:
        output = intake.post(file.read_bytes(), "").json()
        assert intake.work() == 1
        assert intake.state.queue.find(output["id"]).state == "entered"
        assert intake.state.queue.find(output["id"]).owner == "address 127.0.0.1"


def test_what_a_killed_server_left_is_swept_away_and_nothing_else(intake, monkeypatch):
    stored = intake.post(b"queued").json()["id"]
    left = intake.state.files.new()
    sweep_files(intake.state.queue, intake.state.files)
    assert intake.state.files.part(left).exists(), "it may be coming in now"
    monkeypatch.setattr("farshift.leaderboard.server.files._HOUR", -1.0)
    sweep_files(intake.state.queue, intake.state.files)
    assert intake.list_files() == [f"{stored}.zip"]
    intake.state.files.complete_path(stored).unlink()
    for _ in range(3):
        intake.work()
        with intake.board.ledger.store.writing() as connection:
            connection.exec_driver_sql("UPDATE jobs SET due = 0")
    assert intake.state.queue.find(stored).reason.startswith("3 attempts failed: its file is missing on")


def test_a_file_that_is_queued_after_the_arriving_ones_were_listed_is_not_swept_away(intake, monkeypatch):
    queue, files = intake.state.queue, intake.state.files
    id = files.new()
    queue.reserve("team us", 6, id)
    listed = queue.arriving()
    files.finish(id)
    queue.enqueue(id, "team us", "d" * 64, 6)
    monkeypatch.setattr(queue, "arriving", lambda: listed)
    sweep_files(queue, files)
    assert intake.list_files() == [f"{id}.zip"]


def test_a_mistake_of_ours_is_in_the_log_of_the_server_and_only_its_name_is_told(intake, file, monkeypatch, caplog):
    def mistaken(*_: object) -> None:
        raise ZeroDivisionError("in /srv/private")

    monkeypatch.setattr("farshift.leaderboard.server.worker.submit_runs", mistaken)
    id = intake.post(file.read_bytes()).json()["id"]
    for _ in range(3):
        intake.work()
        with intake.board.ledger.store.writing() as connection:
            connection.exec_driver_sql("UPDATE jobs SET due = 0")
    result = intake.get(id).json()
    assert result["state"] == "failed"
    assert result["reason"].endswith("an internal error of Farshift (ZeroDivisionError): see the server's log")
    assert "ZeroDivisionError: in /srv/private" in caplog.text
    assert "in mistaken" in caplog.text
    assert id not in caplog.text


def test_the_log_of_requests_has_no_whole_id():
    id = "0123456789ab" * 5 + "cdef"
    assert shorten_logged_path(f"/api/v1/submissions/{id}") == "/api/v1/submissions/0123456789ab.."
    assert shorten_logged_path(f"/board/api/v1/submissions/{id}") == "/board/api/v1/submissions/0123456789ab.."
    assert shorten_logged_path(f"/submissions/{id}.zip") == f"/submissions/{id}.zip", "what it is named after is public"
