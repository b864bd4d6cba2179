"""The queue: what was acknowledged ends, once, whatever happens to workers."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from farshift.leaderboard.ledger.store import Store
from farshift.leaderboard.server.accounts import DAY, QuotaExceeded
from farshift.leaderboard.server.queue import ENDED, ENTERED, FAILED, QUEUED, REFUSED, RUNNING, Queue
from farshift.leaderboard.settings import ServerSettings
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

SETTINGS = ServerSettings(submissions_a_day=4, bytes_a_day=100, queued_at_once=3, attempts=2, lease_seconds=10)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    url = request.getfixturevalue("server").database() if request.param == "postgresql" else None
    store = Store.in_file(tmp_path / "ledger.sqlite") if url is None else Store(url)
    store.create_tables()
    yield store
    store.close()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(store, clock):
    return Queue(store, SETTINGS, clock)


def test_a_job_is_taken_in_order_and_ends_with_its_entries(queue):
    first, new = queue.enqueue("a", "team us", "d1", 10, team="us")
    second, _ = queue.enqueue("b", "team us", "d2", 10)
    assert new
    assert (first.state, first.position, second.position) == (QUEUED, 1, 2)
    accepted = queue.take("w")
    assert (accepted.id, accepted.state, accepted.attempts, accepted.team) == ("a", RUNNING, 1, "us")
    assert queue.find("b").position == 1
    assert queue.entered(accepted, ["e1", "e2"])
    assert queue.find("a").record() | {"received": "", "updated": ""} == {
        "id": "a", "state": "entered", "digest": "d1", "bytes": 10, "received": "", "updated": "", "attempts": 1,
        "entries": ["e1", "e2"], "problems": [], "reason": "",
    }  # fmt: skip
    assert queue.take("w").id == "b"
    assert queue.take("w") is None
    assert queue.counts() == {"queued": 0, "running": 1, "entered": 1, "refused": 0, "failed": 0}


def test_the_same_bytes_of_a_team_are_one_job_until_they_are_refused(queue):
    queue.enqueue("a", "team us", "d", 10)
    assert queue.enqueue("b", "team us", "d", 10)[0].id == "a"
    assert queue.known("team us", "d").id == "a"
    assert queue.enqueue("c", "team them", "d", 10)[1], "another team's are its own"
    queue.refused(queue.take("w"), "bad", [{"name": "zip-ratio"}])
    assert queue.known("team us", "d").problems == ({"name": "zip-ratio"},)
    again, new = queue.enqueue("e", "team us", "d", 10)
    assert (new, again.id, again.state, again.problems) == (True, "e", QUEUED, ())
    assert queue.find("a") is None


def test_a_lease_that_ends_gives_the_job_to_another_and_in_the_end_it_fails_and_counts(queue, clock):
    queue.enqueue("a", "team us", "d", 100)
    with pytest.raises(QuotaExceeded):
        queue.enqueue("b", "team us", "d2", 1)
    lost = queue.take("w1")
    clock.now += 9
    assert queue.extend(lost)
    clock.now += 9
    assert queue.take("w2") is None, "its lease was extended"
    clock.now += 2
    queue.settle()
    clock.now += 60
    second = queue.take("w2")
    assert second.attempts == 2
    assert not queue.extend(lost)
    assert not queue.entered(lost, ["late"])
    clock.now += 11
    assert queue.take("w3") is None
    failed = queue.find("a")
    assert (failed.state, failed.reason) == (
        FAILED, "2 attempts failed: its worker stopped, or lost the connection to the database",
    )  # fmt: skip
    with pytest.raises(QuotaExceeded):
        queue.enqueue("b", "team us", "d2", 100)
    clock.now += DAY
    assert queue.enqueue("b", "team us", "d2", 100)[1]


@pytest.mark.attack("entrant", "submissions that break after a long time, again and again")
def test_all_attempts_of_a_job_together_stay_within_its_time(store, clock):
    queue = Queue(store, ServerSettings(attempts=3, scoring_seconds=30), clock)
    limits = []
    for number, seconds in enumerate([(11,), (10, 11), (10, 10, 10)]):
        queue.enqueue(str(number), "team us", str(number), 1)
        for attempt, spent in enumerate(seconds, 1):
            job = queue.take("w")
            limits.append(queue.limit_attempt(job))
            assert job.attempts == attempt
            clock.now += spent
            assert queue.broke(job, "it broke")
            clock.now += 60
        assert queue.take("w") is None, "it is not tried again"
        times = "1 attempt" if len(seconds) == 1 else f"{len(seconds)} attempts"
        assert queue.find(str(number)).reason == f"{times} failed: it broke"
    assert limits == pytest.approx([30, 30, 20, 30, 20, 10])


@pytest.mark.attack("entrant", "a full queue, to keep other teams waiting")
def test_teams_take_turns_and_the_oldest_job_of_a_team_comes_first(store, clock):
    queue = Queue(store, ServerSettings(attempts=9, queued_at_once=99), clock)
    for id in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
        queue.enqueue(id, f"team {id[0]}", id, 1)
    assert [queue.find(id).position for id in ("a1", "b1", "c1", "a2", "b2", "a3", "a4")] == [1, 2, 3, 4, 5, 6, 7]

    def work() -> str:
        clock.now += 1
        job = queue.take("w")
        clock.now += 1
        assert queue.broke(job, "oh") if job.id == "a1" else queue.entered(job, ["e"])
        return job.id

    assert [work() for _ in range(3)] == ["a1", "b1", "c1"]
    queue.enqueue("d1", "team d", "d1", 1)
    assert min(queue.jobs([QUEUED]), key=lambda job: job.position).id == "d1", "its team waited longest"
    assert [work() for _ in range(5)] == ["d1", "a1", "b2", "a2", "a3"]


@pytest.mark.attack("entrant", "more open request bodies than a team may submit")
def test_what_arrives_counts_until_it_is_queued_charged_or_released(queue, clock):
    for id in "abc":
        queue.reserve("team us", 30, id)
    with pytest.raises(QuotaExceeded, match="a team may have 3 submissions arriving or in the queue"):
        queue.reserve("team us", 1, "d")
    assert queue.arriving() == {id: ("team us", 30) for id in "abc"}
    assert queue.jobs() == []
    assert queue.take("w") is None
    queue.release("a")
    with pytest.raises(QuotaExceeded, match="a team may submit 100 bytes"):
        queue.reserve("team us", 41, "d")
    queue.reserve("team us", 40, "d")
    assert queue.enqueue("b", "team us", "digest", 30)[1]
    assert queue.enqueue("c", "team us", "digest", 30) == (queue.find("b"), False)
    queue.release("d")
    queue.release("b")
    assert (queue.arriving(), [job.id for job in queue.jobs()]) == ({}, ["b"])
    queue.reserve("team us", 65, "e")
    clock.now += DAY
    queue.reserve("team us", 100, "f")
    assert queue.arriving() == {"f": ("team us", 100)}, "a machine that never came back"


def test_an_attempt_that_breaks_waits_a_little_and_a_worker_that_stops_gives_back(queue, clock):
    queue.enqueue("a", "team us", "d", 10)
    assert queue.give_back(queue.take("w"))
    accepted = queue.take("w")
    assert accepted.attempts == 1, "that was no attempt"
    assert queue.broke(accepted, "it used too much memory")
    assert queue.take("w") is None
    clock.now += 10
    assert queue.broke(queue.take("w"), "it used too much memory")
    assert queue.find("a").reason == "2 attempts failed: it used too much memory"


def test_quotas_hold_and_say_when_to_come_again(queue, clock):
    for number in range(3):
        queue.enqueue(str(number), "team us", str(number), 10)
        clock.now += 100
    with pytest.raises(QuotaExceeded, match="a team may have 3 submissions arriving or in the queue") as full:
        queue.enqueue("x", "team us", "x", 10)
    assert full.value.after == 30
    queue.entered(queue.take("w"), ["e"])
    with pytest.raises(QuotaExceeded, match="a team may submit 100 bytes in 24 hours$") as bytes_:
        queue.enqueue("x", "team us", "x", 75)
    assert bytes_.value.after == DAY - 300
    with pytest.raises(QuotaExceeded, match="100 bytes") as never:
        queue.enqueue("x", "team us", "x", 101)
    assert never.value.after is None
    queue.enqueue("3", "team us", "3", 10)
    queue.entered(queue.take("w"), ["e"])
    with pytest.raises(QuotaExceeded, match="a team may submit 4 times in 24 hours") as count:
        queue.enqueue("x", "team us", "x", 10)
    assert count.value.after == DAY - 300
    assert queue.enqueue("y", "team them", "x", 10)[1]
    clock.now += DAY - 300
    assert queue.enqueue("x", "team us", "x", 10)[1]


def test_many_workers_and_servers_take_each_job_once(store):
    many = SETTINGS.model_copy(
        update=dict(submissions_a_day=99, bytes_a_day=10**6, queued_at_once=99, lease_seconds=600)
    )

    def handed_in(number: int) -> bool:
        return Queue(store, many).enqueue(f"id{number}", "team us", f"d{number // 2}", 1)[1]

    def worked(name: int) -> list[str]:
        queue, done = Queue(store, many), []
        while (job := queue.take(f"w{name}")) is not None:
            done.append(job.digest)
            assert queue.entered(job, [job.digest])
        return done

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(handed_in, range(24))) == 12, "each digest is one job"
        done = [digest for each in threads.map(worked, range(3)) for digest in each]
    left = Queue(store, many)
    while (job := left.take("last")) is not None:  # one that another held when a worker looked
        done.append(job.digest)
        left.entered(job, [])
    assert sorted(done) == sorted(f"d{number}" for number in range(12))


def test_a_quota_holds_against_servers_that_ask_at_once(store):
    def handed_in(number: int) -> bool:
        try:
            return Queue(store, SETTINGS).enqueue(f"id{number}", "team us", f"d{number}", 1)[1]
        except QuotaExceeded:
            return False

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(handed_in, range(10))) == SETTINGS.queued_at_once


class Machine(RuleBasedStateMachine):
    """The model: which jobs were acknowledged, and what each ended as."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        store = Store.in_file(Path(self.folder.name) / "ledger.sqlite")
        store.create_tables()
        self.clock = Clock()
        roomy = SETTINGS.model_copy(update=dict(submissions_a_day=10_000, bytes_a_day=10**9, queued_at_once=10_000))
        self.queue = Queue(store, roomy, self.clock)
        self.ids: list[str] = []
        self.handed_in = 0
        self.held: list = []
        self.ended: dict[str, str] = {}

    def teardown(self) -> None:
        self.queue.store.close()
        self.folder.cleanup()

    @rule(digest=st.sampled_from("abcd"))
    def hand_in(self, digest):
        self.queue.settle()
        before = {job.digest: job for job in self.queue.jobs()}.get(digest)
        self.handed_in += 1  # a hand-in has an id of its own, also where earlier ones were replaced
        job, new = self.queue.enqueue(f"id{self.handed_in}", "team us", digest, 1)
        if before is None or before.state in (REFUSED, FAILED):
            assert new
            if before is not None:
                self.ids.remove(before.id)
                self.ended.pop(before.id, None)
            self.ids.append(job.id)
        else:
            assert (new, job.id) == (False, before.id)

    @rule()
    def take(self):
        due = [job for job in self.queue.jobs([QUEUED]) if job.due <= self.clock.now]
        job = self.queue.take(f"w{len(self.held)}")
        if job is not None:
            self.held.append(job)
        elif due:
            assert all(item.state != QUEUED or item.due > self.clock.now for item in self.queue.jobs([QUEUED]))

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0), end=st.sampled_from(["entered", "refused", "broke", "extend", "give_back", "die"]))
    def work(self, which, end):
        job = self.held[which % len(self.held)]
        if end == "die":
            self.held.remove(job)
            return
        output = {"entered": (["e"],), "refused": ("no",), "broke": ("oh",), "extend": (), "give_back": ()}[end]
        done = getattr(self.queue, end)(job, *output)
        if done and end in ("entered", "refused"):
            assert job.id not in self.ended, "a job ends once"
            self.ended[job.id] = end
        if end != "extend":
            self.held.remove(job)

    @rule(seconds=st.sampled_from([1, 5, 11, 60]))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def settle(self):
        self.queue.settle()

    @invariant()
    def nothing_is_lost_and_what_ended_stays(self):
        jobs = {job.id: job for job in self.queue.jobs()}
        assert set(jobs) == set(self.ids)
        for id, end in self.ended.items():
            assert jobs[id].state == end
        for job in jobs.values():
            assert job.attempts <= self.queue.settings.attempts
            assert (job.lease is not None) == (job.state == RUNNING)
            assert job.state not in ENDED or job.state == FAILED or self.ended[job.id] == job.state
            assert job.state != FAILED or job.reason
        assert [job.position for job in jobs.values() if job.state == QUEUED] == list(
            range(1, sum(job.state == QUEUED for job in jobs.values()) + 1)
        )
        assert sum(self.queue.counts().values()) == len(jobs)

    @rule()
    def everything_ends_when_workers_work(self):
        for _ in range(100):
            self.clock.now += 61
            job = self.queue.take("good")
            if job is not None:
                assert self.queue.entered(job, ["e"])
                self.ended[job.id] = ENTERED
            elif not self.queue.jobs([QUEUED, RUNNING]):
                break
        assert not self.queue.jobs([QUEUED, RUNNING])


def test_whatever_workers_and_clients_do_no_job_is_lost_or_ends_twice_or_stays_for_ever():
    run_state_machine_as_test(Machine, settings=settings(max_examples=6, stateful_step_count=20))
