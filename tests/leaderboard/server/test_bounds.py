"""What a submission may make a board do: score what it has, and nothing else; arrive within the limits of its team."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace

import farshift as fs
import pytest
from farshift.leaderboard.server.accounts import create_token
from farshift.leaderboard.server.files import SPARE
from fuzz.packing import Parts
from intake import score_here, taking_in

ABSENT = "pacs/sketch"
"""A benchmark of downloads whose data no test has."""


def submission_on(good: Parts, name: str, note: str = "") -> bytes:
    """A submission of team us that names a benchmark, with all that is checked before its data are read."""
    run, listed = good.run, good.card["runs"][0]
    benchmark, of = fs.benchmark(name), fs.benchmark(listed["benchmark"])
    if benchmark.name != of.name:
        rule = benchmark.rule(None).name
        identity = benchmark.identity("full", selection=rule)
        assert of.identity("full", selection=rule) == run["benchmark"]["entry_identity"]
        run = run | {"benchmark": run["benchmark"] | {"name": name, "selection": rule, "entry_identity": identity}}
    card = good.card | {"team": "us", "note": note, "runs": [listed | {"benchmark": name}]}
    return dataclasses.replace(good, run=run, card=card).signed().packed()


def wait_until(fact: Callable[[], object]) -> None:
    while not fact():
        time.sleep(0.01)


@pytest.fixture
def no_downloads(monkeypatch):
    def fetch(*_: object) -> None:
        pytest.fail("a mirror was asked for data")

    monkeypatch.setattr("farshift.loaders.mirrors.load_mirror", fetch)


@pytest.mark.attack("entrant", "submissions on benchmarks that a board does not score, to make it download")
@pytest.mark.parametrize(
    ("settings", "why"),
    [({}, "its machine does not have the data"), ({"benchmarks": ["modadd97/xi35"]}, "it scores modadd97/xi35")],
)
def test_a_benchmark_that_the_board_does_not_score_is_refused_by_name_and_counts(
    board, good, no_downloads, settings, why
):
    with taking_in(board, score_here, submissions_a_day=3, **settings) as intake:
        names = ("modadd97/xi35", ABSENT, ABSENT)
        ids = [intake.post(submission_on(good, name, str(note))).json()["id"] for note, name in enumerate(names)]
        assert intake.work() == 3
        entered, *refused = (intake.state.queue.find(id) for id in ids)
        assert entered.state == "entered"
        for job in refused:
            (problem,) = job.problems
            assert (job.state, problem["name"]) == ("refused", "benchmark-unlisted")
            assert problem["what"] == f"this board does not score {ABSENT}: {why}"
        assert intake.post(submission_on(good, ABSENT, "more")).status_code == 429


@pytest.mark.attack("entrant", "submissions on listed benchmarks without data, to make a worker download")
def test_a_worker_never_downloads_or_builds_data(board, good, no_downloads):
    with taking_in(board, score_here, benchmarks=[ABSENT], attempts=1) as intake:
        id = intake.post(submission_on(good, ABSENT)).json()["id"]
        assert intake.work() == 1
        assert intake.state.queue.find(id).reason == (
            f"1 attempt failed: {ABSENT}: its data are not on the machine that scores (farshift splits pull {ABSENT}@1)"
        )


@pytest.mark.attack("entrant", "more open request bodies than a team may submit")
def test_a_body_counts_for_its_team_while_it_arrives_and_no_longer(board):
    with taking_in(board, score_here, queued_at_once=3, bytes_a_day=5000, submission_bytes=2000) as intake:
        queue = intake.state.queue
        with ExitStack() as stack:
            lines = [stack.enter_context(intake.begin()) for _ in range(3)]
            wait_until(lambda: len(queue.arriving()) == 3)
            refused = intake.post(b"x")
            assert (refused.status_code, refused.headers["Retry-After"]) == (429, "30")
            assert "3 submissions arriving or in the queue" in refused.json()["error"]
            others = create_token(board.ledger.store, "them")[0]
            assert intake.post(b"x", others).status_code == 202
            lines.pop().close()
            wait_until(lambda: len(queue.arriving()) == 2)
            stack.enter_context(intake.begin(b"", "Transfer-Encoding: chunked"))
            wait_until(lambda: len(queue.arriving()) == 3)
            assert sorted(size for _, size in queue.arriving().values()) == [1000, 1000, 2000], "it may become long"
            lines[0].sendall(b"x" * 1000)
            assert lines[0].recv(1000).startswith(b"HTTP/1.1 202")
        wait_until(lambda: not queue.arriving())
        assert intake.post(b"y" * 2000).status_code == 202
        assert intake.post(b"z" * 1999).status_code == 202, "what did not arrive is not counted"


@pytest.mark.attack("entrant", "request bodies that together fill the disk")
def test_what_is_still_to_arrive_needs_room_on_the_disk_and_half_of_it_is_for_others(board, monkeypatch):
    with taking_in(board, score_here) as intake, ExitStack() as stack:
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=SPARE + 3000))
        stack.enter_context(intake.begin())
        wait_until(lambda: intake.state.queue.arriving())
        assert intake.post(b"x" * 501).status_code == 507, "1501 of 3000"
        assert intake.post(b"x" * 500).status_code == 202
        others = create_token(board.ledger.store, "them")[0]
        assert intake.post(b"x" * 1501, others).status_code == 507
        assert intake.post(b"x" * 1500, others).status_code == 202
        third = create_token(board.ledger.store, "third")[0]
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=SPARE + 1500))
        assert intake.post(b"x" * 501, third).status_code == 507, "1000 are still to arrive"
        assert intake.post(b"x" * 500, third).status_code == 202


@pytest.mark.attack("disk", "kill -9 of a server that receives submissions")
def test_what_a_killed_server_was_receiving_does_not_count_and_leaves_no_file(board):
    with taking_in(board, score_here, queued_at_once=1) as intake:
        id = intake.state.files.new()
        intake.state.queue.reserve("team us", 1000, id)
        intake.state.files.part(id).write_bytes(b"x" * 900)
        accepted = intake.post(b"x")
        assert accepted.status_code == 202
        assert intake.state.queue.arriving() == {}
        assert intake.list_files() == [f"{accepted.json()['id']}.zip"]
