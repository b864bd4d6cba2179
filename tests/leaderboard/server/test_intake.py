"""Handing in over HTTP: acknowledged on the disk, scored once, refused in words."""

from __future__ import annotations

import socket
import sys
import time
from base64 import b64encode
from hashlib import sha1, sha256
from pathlib import Path

import httpx2
import pytest
from farshift.leaderboard.operations.verify import verify
from farshift.leaderboard.server.accounts.audit import audit
from farshift.leaderboard.server.accounts.tokens import create, revoke
from farshift.leaderboard.server.intake.files import sweep
from farshift.leaderboard.server.requests import logged_path
from farshift.leaderboard.submission.pack import pack

sys.path.insert(0, str(Path(__file__).parent.parent))
from intake import ScoredHere, taking_in


@pytest.fixture(autouse=True)
def _quickly(remembered):
    pass


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory) -> Path:
    return pack(runs[:1], tmp_path_factory.mktemp("packed") / "s.zip", team="us")


@pytest.fixture
def intake(board):
    with taking_in(board, ScoredHere) as running:
        yield running


@pytest.fixture
def client(intake):
    with httpx2.Client(base_url=f"{intake.url}/api/v1", headers={"Authorization": f"Bearer {intake.token}"}) as client:
        yield client


def post(client, content, where="submissions", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(where, content=content, headers={"Content-Type": "application/zip", **named})


def bearer(intake):
    return f"Authorization: Bearer {intake.token}\r\n"


def files_of(intake):
    return sorted(path.name for path in intake.state.files.folder.iterdir())


def test_a_submission_is_queued_on_the_disk_then_entered_once(intake, client, file):
    content = file.read_bytes()
    digest = b64encode(sha256(content).digest()).decode()
    taken = post(client, content, Content_Digest=f"sha-256=:{digest}:")
    assert taken.status_code == 202
    said = taken.json()
    assert (said["state"], said["position"], said["digest"]) == ("queued", 1, sha256(content).hexdigest())
    assert files_of(intake) == [f"{said['id']}.zip"]
    assert taken.headers["Location"] == f"submissions/{said['id']}"
    again = post(client, content)
    assert (again.status_code, again.json()["id"]) == (200, said["id"])
    assert files_of(intake) == [f"{said['id']}.zip"]
    waiting = httpx2.get(f"{intake.url}/api/v1/submissions/{said['id']}")
    assert (waiting.json()["state"], waiting.headers["Retry-After"]) == ("queued", "1")
    assert intake.work() == 1
    entered = client.get(f"submissions/{said['id']}").json()
    assert entered["state"] == "entered"
    assert [row.entry for row in intake.board.standings()] == entered["entries"]
    assert files_of(intake) == []
    assert post(client, content).json()["entries"] == entered["entries"], "known, and not scored again"
    assert intake.work() == 0
    found = verify(intake.board)
    assert found.differences == [] == found.not_recomputed


def test_a_submission_that_does_not_validate_says_its_problems_as_pack_does(intake, client):
    said = post(client, b"no zip").json()
    assert intake.work() == 1
    refused = client.get(f"submissions/{said['id']}").json()
    assert refused["state"] == "refused"
    assert [problem["name"] for problem in refused["problems"]] == ["zip-unreadable"]
    assert refused["reason"].startswith("the submission: not a readable zip")
    assert files_of(intake) == []


def test_a_run_of_another_submission_is_refused_in_a_line(intake, client, file, runs, tmp_path):
    post(client, file.read_bytes())
    twin = post(client, pack(runs[:1], tmp_path / "twin.zip", team="us", note="again").read_bytes()).json()
    assert intake.work() == 2
    found = client.get(f"submissions/{twin['id']}").json()
    assert (found["state"], found["problems"]) == ("refused", [])
    assert "is the run behind entry" in found["reason"]
    assert str(tmp_path.parent) not in found["reason"]


@pytest.mark.attack("entrant", "submissions under another team's name, with a token of one's own")
def test_a_token_hands_in_for_its_own_team_and_key_only(intake, client, runs, tmp_path):
    theirs = post(client, pack(runs[:1], tmp_path / "theirs.zip", team="them").read_bytes()).json()
    keyed, _ = create(intake.board.ledger.store, "us", key="ab" * 32)
    unsigned = pack(runs[1:2], tmp_path / "unsigned.zip", team="us").read_bytes()
    other = post(client, unsigned, Authorization=f"Bearer {keyed}").json()
    assert intake.work() == 2
    for said, what in ((theirs, "is of the team 'them', and the token is of 'us'"), (other, "is not signed, and")):
        (problem,) = client.get(f"submissions/{said['id']}").json()["problems"]
        assert problem["name"] == "team-other"
        assert what in problem["what"]
    assert intake.board.standings() == []


@pytest.mark.attack("entrant", "no token, made-up, revoked and expired tokens, and tokens for something else")
def test_only_a_valid_token_hands_in(intake, client, file):
    store = intake.board.ledger.store
    revoked, made = create(store, "us")
    revoke(store, made.id, "lost")
    narrow, _ = create(store, "us", scopes=("hand-in",))
    old, made = create(store, "us", expires="1d")
    with store.committing() as connection:
        connection.exec_driver_sql(f"UPDATE tokens SET expires = 1 WHERE id = '{made.id}'")
    cases = [
        ("", 401, "a token of your team is needed"),
        ("Bearer fs_" + "A" * 43, 401, "unknown"),
        ("Bearer ' OR 1=1 --", 401, "unknown"),
        (f"Basic {intake.token}", 401, "unknown"),
        (f"Bearer {revoked}", 401, "this token is revoked"),
        (f"Bearer {old}", 401, "this token is expired"),
        (f"Bearer {narrow}", 403, "this token is for hand-in, not for submit"),
    ]
    for given, status, why in cases:
        answer = post(client, file.read_bytes(), Authorization=given)
        assert answer.status_code == status, given
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert why in answer.json()["error"]
    assert answer.json()["status"] == 403
    assert intake.state.queue.jobs() == []


@pytest.mark.attack("visitor", "guessed ids of submissions, and of others' uploads")
def test_an_id_is_not_guessed_and_an_upload_is_its_owner_s(intake, client, file):
    for id in ("1", "0" * 64, "..%2f..%2fprivate%2fkey.pem", "%00", "x" * 5000):
        assert client.get(f"submissions/{id}").status_code == 404
    mine = begun(client, 10).headers["Location"]
    theirs, _ = create(intake.board.ledger.store, "them")
    for method in ("HEAD", "PATCH", "DELETE"):
        headers = {"Authorization": f"Bearer {theirs}", **TUS, "Upload-Offset": "0"}
        headers["Content-Type"] = "application/offset+octet-stream"
        assert client.request(method, mine, headers=headers).status_code == 404
    ids = {post(client, bytes([number])).json()["id"] for number in range(3)}
    assert all(len(id) == 64 for id in ids)


@pytest.mark.attack("visitor", "bodies that are too large, of another type or another digest, empty or cut off")
def test_a_body_that_cannot_be_a_submission_is_refused_and_leaves_nothing(board, file):
    with taking_in(board, ScoredHere, submission_bytes=1000) as intake:
        head = {"Authorization": f"Bearer {intake.token}"}
        with httpx2.Client(base_url=f"{intake.url}/api/v1", headers=head) as client:

            def endless():
                for _ in range(100):
                    yield b"x" * 64

            cases = [
                (post(client, b"x" * 1001), 413),
                (post(client, endless()), 413),  # it states no length
                (post(client, b""), 400),
                (post(client, b"x", Content_Digest="sha-256=:AAAA:"), 400),
                (post(client, b"x", Content_Digest=f"sha-256=:{'A' * 43}=:"), 400),
                (post(client, b"x", Content_Type="text/plain"), 415),
            ]
            assert [answer.status_code for answer, _ in cases] == [status for _, status in cases]
            assert all(answer.json()["error"] for answer, _ in cases)
        with socket.create_connection(("127.0.0.1", int(intake.url.rpartition(":")[2]))) as line:
            start = "POST /api/v1/submissions HTTP/1.1\r\nHost: x\r\n" + bearer(intake)
            line.sendall(f"{start}Content-Type: application/zip\r\nContent-Length: 500\r\n\r\nhalf".encode())
        with socket.create_connection(("127.0.0.1", int(intake.url.rpartition(":")[2]))) as line:
            line.sendall(f"{start}X-Long: {'x' * 200_000}\r\n\r\n".encode())
            assert b" 4" in line.recv(100)[:14]
        while files_of(intake) != []:  # the server notices that the client went
            time.sleep(0.05)
        assert intake.state.queue.jobs() == []


@pytest.mark.attack("visitor", "bodies that come slowly, or never")
def test_a_body_that_does_not_come_is_given_up(board):
    with taking_in(board, ScoredHere, silence_seconds=0.2, slowest_bytes_a_second=1000) as intake:
        for pieces in ([], [b"x"] * 1000):
            with socket.create_connection(("127.0.0.1", int(intake.url.rpartition(":")[2]))) as line:
                line.sendall(
                    b"POST /api/v1/submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/zip\r\n"
                    + f"{bearer(intake)}Content-Length: 5000\r\n\r\nbegin".encode()
                )
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
        assert files_of(intake) == []


def test_quotas_and_rates_say_when_to_come_again_and_are_audited(board, file):
    with taking_in(board, ScoredHere, submissions_a_day=1, requests_a_minute=8) as intake:
        head = {"Authorization": f"Bearer {intake.token}"}
        with httpx2.Client(base_url=f"{intake.url}/api/v1", headers=head) as client:
            assert post(client, b"x").status_code == 202
            answer = post(client, b"y")
            assert answer.status_code == 429
            assert 86000 < int(answer.headers["Retry-After"]) <= 86400
            assert "1 submissions are taken of a team in 24 hours" in answer.json()["error"]
            statuses = [client.get("submissions/none").status_code for _ in range(12)]
            assert statuses.count(429) >= 3
            late = client.get("submissions/none")
            assert int(late.headers["Retry-After"]) >= 1
    assert [event.what for event in audit(board.ledger.store)] == ["token-created", "quota-exceeded"]
    assert audit(board.ledger.store)[1].detail["owner"] == "team us"


def test_an_open_board_takes_submissions_without_a_token(board, file):
    with taking_in(board, ScoredHere, open=True) as intake:
        said = httpx2.post(
            f"{intake.url}/api/v1/submissions", content=file.read_bytes(), headers={"Content-Type": "application/zip"}
        ).json()
        assert intake.work() == 1
        assert intake.state.queue.find(said["id"]).state == "entered"
        assert intake.state.queue.find(said["id"]).owner == "address 127.0.0.1"


TUS = {"Tus-Resumable": "1.0.0"}


def begun(client, size, **headers):
    return client.post("uploads", headers={**TUS, "Upload-Length": str(size), **headers})


def sent(client, place, offset, content, **headers):
    kind = "application/offset+octet-stream"
    return client.patch(
        place, content=content, headers={**TUS, "Content-Type": kind, "Upload-Offset": str(offset), **headers}
    )


def test_an_upload_is_resumed_and_becomes_a_submission(intake, client, file):
    content = file.read_bytes()
    meta = b64encode(sha256(content).hexdigest().encode()).decode()
    place = begun(client, len(content), **{"Upload-Metadata": f"sha256 {meta}"}).headers["Location"]
    half = len(content) // 2
    assert sent(client, place, 0, content[:half]).headers["Upload-Offset"] == str(half)
    assert sent(client, place, 0, content).status_code == 409
    sum = b64encode(sha1(content[half:], usedforsecurity=False).digest()).decode()
    assert sent(client, place, half, b"wrong", **{"Upload-Checksum": f"sha1 {sum}"}).status_code == 460
    assert client.head(place, headers=TUS).headers["Upload-Offset"] == str(half), "what was wrong is not kept"
    done = sent(client, place, half, content[half:], **{"Upload-Checksum": f"sha1 {sum}"})
    assert done.status_code == 204
    id = done.headers["Farshift-Submission"]
    assert client.head(place, headers=TUS).headers["Farshift-Submission"] == id
    assert sent(client, place, len(content), b"").headers["Farshift-Submission"] == id
    assert client.delete(place, headers=TUS).status_code == 409
    assert intake.work() == 1
    assert client.get(f"submissions/{id}").json()["state"] == "entered"
    assert not [name for name in files_of(intake) if name.endswith((".zip", ".part"))]


def test_what_came_before_a_connection_broke_is_kept(intake, client):
    size, most = 900_000, 600_000
    place = begun(client, size).headers["Location"]
    part = intake.state.files.part(place.rpartition("/")[2])
    with socket.create_connection(("127.0.0.1", int(intake.url.rpartition(":")[2]))) as line:
        line.sendall(
            f"PATCH /api/v1/{place} HTTP/1.1\r\nHost: x\r\n{bearer(intake)}"
            "Tus-Resumable: 1.0.0\r\nContent-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\n"
            f"Content-Length: {size}\r\n\r\n{'a' * most}".encode()
        )
        while not part.stat().st_size:
            time.sleep(0.05)
        assert sent(client, place, 0, b"a").status_code == 423, "somebody is sending it"
    while (had := int(client.head(place, headers=TUS).headers["Upload-Offset"])) == 0:
        time.sleep(0.1)
    assert 0 < had <= most
    assert sent(client, place, had, b"b" * (size - had + 1)).status_code == 413
    had = int(client.head(place, headers=TUS).headers["Upload-Offset"])
    assert sent(client, place, had, b"b" * (size - had)).status_code == 204
    assert sent(client, place, size, b"").headers["Farshift-Submission"] == place.rpartition("/")[2]


def test_tus_says_what_it_can_and_what_it_cannot(intake, client):
    told = client.options("uploads")
    assert told.headers["Tus-Version"] == "1.0.0"
    assert told.headers["Tus-Extension"] == "creation,termination,checksum"
    assert client.post("uploads", headers={"Upload-Length": "5"}).status_code == 412
    for size in ("", "0", "-1", "x", "9" * 30):
        assert begun(client, size).status_code == 400
    assert begun(client, 1 << 40).status_code == 413
    assert begun(client, 5, **{"Upload-Metadata": "sha256 ???"}).status_code == 400
    place = begun(client, 5, **{"Upload-Metadata": f"sha256 {b64encode(b'0' * 64).decode()}"}).headers["Location"]
    assert client.patch(place, headers={**TUS, "Upload-Offset": "0"}).status_code == 415
    assert sent(client, place, 0, b"12345").status_code == 400
    assert client.head(place, headers=TUS).status_code == 404, "it was not what it was said to be"
    place = begun(client, 5).headers["Location"]
    assert client.delete(place, headers=TUS).status_code == 204
    assert client.head(place, headers=TUS).status_code == 404
    assert [begun(client, 5).status_code for _ in range(11)] == [201] * 10 + [429]


def test_what_a_killed_server_left_is_swept_away_and_nothing_else(intake, client, monkeypatch):
    kept = post(client, b"queued").json()["id"]
    upload = begun(client, 5).headers["Location"].rpartition("/")[2]
    left = intake.state.files.new()
    sweep(intake.state.queue, intake.state.files)
    assert intake.state.files.part(left).exists(), "it may be coming in now"
    monkeypatch.setattr("farshift.leaderboard.server.intake.files._HOUR", -1.0)
    sweep(intake.state.queue, intake.state.files)
    assert files_of(intake) == sorted([f".{upload}.part", f"{kept}.zip"])
    intake.state.files.whole(kept).unlink()
    for _ in range(3):
        intake.work()
        with intake.board.ledger.store.committing() as connection:
            connection.exec_driver_sql("UPDATE jobs SET due = 0")
    assert intake.state.queue.find(kept).reason == "3 attempts failed: its file is missing"


def test_a_mistake_of_ours_is_in_the_log_of_the_server_and_only_its_name_is_told(
    intake, client, file, monkeypatch, caplog
):
    def mistaken(*_: object) -> None:
        raise ZeroDivisionError("in /srv/private")

    monkeypatch.setattr("farshift.leaderboard.server.intake.scoring.submit", mistaken)
    id = post(client, file.read_bytes()).json()["id"]
    for _ in range(3):
        intake.work()
        with intake.board.ledger.store.committing() as connection:
            connection.exec_driver_sql("UPDATE jobs SET due = 0")
    found = client.get(f"submissions/{id}").json()
    assert found["state"] == "failed"
    assert found["reason"].endswith("a mistake in Farshift (ZeroDivisionError): the log of its server says more")
    assert "ZeroDivisionError: in /srv/private" in caplog.text
    assert "in mistaken" in caplog.text
    assert id not in caplog.text


def test_the_log_of_requests_has_no_whole_id():
    id = "0123456789ab" * 5 + "cdef"
    assert logged_path(f"/api/v1/submissions/{id}") == "/api/v1/submissions/0123456789ab.."
    assert logged_path(f"/board/api/v1/uploads/{id}") == "/board/api/v1/uploads/0123456789ab.."
    assert logged_path(f"/submissions/{id}.zip") == f"/submissions/{id}.zip", "what it is named after is public"
