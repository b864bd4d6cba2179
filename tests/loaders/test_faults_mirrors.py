"""Every fault of a network, on a file server and on a Hub: the pinned bytes, or one error that says why not."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from types import SimpleNamespace

import hub_client
import pytest
from farshift import load
from farshift.core import retry
from farshift.core.errors import Unavailable
from farshift.loaders.acquire.fetch import FilePin, fetch_file
from farshift.loaders.files import http
from farshift.loaders.mirrors import https
from hub_faults import (
    LONG,
    Cut,
    Fault,
    Flip,
    IgnoreRange,
    Meanwhile,
    OtherRange,
    Refuse,
    Stall,
    Trickle,
    WrongLength,
    patience,
)
from hub_server import Hub, serving
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def shard(tmp_path_factory) -> bytes:
    """A shard of a published part: 1.2 MB, no two kilobytes alike."""
    folder = load("prefix_sums/32_to_64", "id_test").to_webdataset(tmp_path_factory.mktemp("shard") / "out")
    return next(folder.glob("*.tar")).read_bytes()


@pytest.fixture
def hub(shard, cache, monkeypatch) -> Iterator[Hub]:
    """A server of one file, and a client that asks again at once."""
    monkeypatch.setattr(http, "STALL", LONG)
    monkeypatch.setattr(retry, "PAUSE", 0.005)
    with serving() as hub:
        hub.commit({"rows.tar": shard})
        yield hub


def pin(content: bytes, *mirrors: dict[str, str]) -> FilePin:
    return FilePin(name="rows.tar", sha256=sha256(content).hexdigest(), bytes=len(content), mirrors=list(mirrors))


def plan(hub: Hub, *faults: Fault) -> None:
    for fault in faults:
        hub.faults.plan("GET /plain/*/rows.tar", fault)


SURVIVED = {
    "cut at once": [Cut(0)],
    "cut": [Cut(100_000)],
    "reset": [Cut(100_000, reset=True)],
    "cut ten times": [Cut(50_000)] * 10,
    "reset ten times": [Cut(50_000, reset=True)] * 10,
    "a length that is too long": [WrongLength(1_000)],
    "a length that is too short": [WrongLength(-1_000)],
    "busy": [Refuse(429, "0"), Refuse(503), Refuse(500)],
    "busy in the middle": [Cut(100_000), Refuse(429, "0"), Cut(100_000), Refuse(502)],
    "stalled": [Stall(100_000)],
    "stalled before a byte": [Stall(0)],
    "slow": [Trickle(300_000, 0.02)],
    "no ranges": [Cut(100_000), IgnoreRange()],
    "another range": [Cut(100_000), OtherRange(5)],
}


@pytest.mark.parametrize("faults", SURVIVED.values(), ids=SURVIVED)
def test_a_file_server_with_a_passing_fault_gives_the_pinned_bytes(hub, shard, faults, monkeypatch):
    monkeypatch.setattr(http, "STALL", patience(*faults))
    plan(hub, *faults)
    assert fetch_file(pin(shard, {"sort": "https", "url": hub.plain("rows.tar")})).read_bytes() == shard
    assert hub.faults.left == 0, "every fault came"


REFUSED = {
    "absent": ([Refuse(404)], "answered 404"),
    "forbidden": ([Refuse(403)], "answered 403"),
    "down": ([Refuse(500)] * 4, "answered 500"),
    "busy for good": ([Refuse(429, "0")] * 4, "answered 429"),
    "cut for good": ([Cut(0)] * 4, "ended at 0 of"),
    "cut for good in the middle": ([Cut(100_000), *[Cut(0)] * 3], "ended at 100000 of"),
    "stalled for good": ([Stall(0)] * 2, "no byte was received for"),
    "always another range": ([Cut(100_000), *[OtherRange(7)] * 3], "sent a range that does not begin at byte 100000"),
    "one wrong bit": ([Flip(700_001)], "returned another file"),
    "one wrong bit after a cut": ([Cut(100_000), Flip(700_001)], "returned another file"),
}


@pytest.mark.parametrize(("faults", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_file_server_with_a_lasting_fault_is_one_error_and_the_next_call_works(
    hub, shard, faults, reason, monkeypatch
):
    monkeypatch.setattr(http, "STALL", patience(*faults))
    monkeypatch.setattr(https, "_TRIES", len(faults) if Stall(0) in faults else https._TRIES)
    plan(hub, *faults)
    expected = pin(shard, {"sort": "https", "url": hub.plain("rows.tar")})
    with pytest.raises(Unavailable, match=rf"^rows\.tar is not available: .*{reason}.*FARSHIFT_MIRRORS") as refused:
        fetch_file(expected)
    assert "\n" not in str(refused.value)
    assert hub.faults.left == 0
    monkeypatch.setattr(http, "STALL", LONG)
    assert fetch_file(expected).read_bytes() == shard


def test_the_redirect_of_a_large_file_is_followed_and_its_download_resumed(hub, shard):
    hub.faults.plan("GET /large/*", Cut(100_000))
    hub.faults.plan("GET */resolve/*", Refuse(503), skip=1)
    assert fetch_file(pin(shard, {"sort": "https", "url": hub.resolve("rows.tar")})).read_bytes() == shard
    assert hub.requests[-1].range == "bytes=100000-"


def test_a_file_that_becomes_the_pinned_one_in_the_middle_is_begun_again(hub, shard):
    hub.commit({"rows.tar": bytes(len(shard))})
    hub.faults.plan("GET /plain/*", Meanwhile(lambda: hub.commit({"rows.tar": shard}), Cut(100_000)))
    assert fetch_file(pin(shard, {"sort": "https", "url": hub.plain("rows.tar")})).read_bytes() == shard
    assert [request.range for request in hub.requests] == [None, "bytes=100000-"]


def test_a_server_that_asks_to_wait_is_given_its_time_up_to_a_limit(hub, shard, monkeypatch):
    expected = pin(shard, {"sort": "https", "url": hub.plain("rows.tar")})
    pauses: list[float] = []
    monkeypatch.setattr(https, "time", SimpleNamespace(sleep=pauses.append))
    plan(hub, Refuse(429, "3600"))
    assert fetch_file(expected).read_bytes() == shard
    assert pauses == [retry.LONGEST_PAUSE]


one_fault = st.one_of(
    st.builds(Cut, st.integers(0, 30_000), st.booleans()),
    st.builds(WrongLength, st.integers(-30_000, 30_000)),
    st.builds(Flip, st.integers(0, 29_999)),
    st.builds(Refuse, st.sampled_from([404, 429, 500, 503]), st.just("0")),
    st.builds(OtherRange, st.integers(1, 30_000)),
    st.sampled_from([IgnoreRange(), Stall(10_000)]),
)


@given(faults=st.lists(one_fault, max_size=7))
def test_whatever_faults_come_one_after_another_no_wrong_byte_is_taken(faults, shard, tmp_path_factory):
    content = shard[:30_000]
    with pytest.MonkeyPatch.context() as patch, serving() as hub:
        patch.setattr(http, "STALL", patience(*faults))
        patch.setattr(retry, "PAUSE", 0.001)
        patch.setenv("FARSHIFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        hub.commit({"rows.tar": content})
        plan(hub, *faults)
        expected = pin(content, {"sort": "https", "url": hub.plain("rows.tar")})
        for _ in faults:
            try:
                assert fetch_file(expected).read_bytes() == content
            except Unavailable:
                continue
        hub.faults.clear()
        patch.setattr(http, "STALL", LONG)
        assert fetch_file(expected).read_bytes() == content


ON_A_HUB: dict[str, tuple[list[tuple[str, Fault]], str]] = {
    "nothing": ([], ""),
    "cut": ([("GET /large/*", Cut(100_000))], ""),
    "stalled": ([("GET /large/*", Stall(100_000))], ""),
    "busy": ([("HEAD */resolve/*", Refuse(503)), ("GET /large/*", Refuse(429, "0"))], ""),
    "no ranges": ([("GET /large/*", Cut(100_000)), ("GET /large/*", IgnoreRange())], ""),
    "reset": ([("GET /large/*", Cut(100_000, reset=True))], "ReadError"),
    "a length that is too short": ([("GET /large/*", WrongLength(-1_000))], "Consistency check failed"),
    "one wrong bit": ([("GET /large/*", Flip(700_001))], "returned another file"),
    "absent": ([("HEAD */resolve/*", Refuse(404))], "404"),
    "down": ([("GET /large/*", Refuse(500))], "500"),
}

FETCHED = """
from concurrent.futures import ThreadPoolExecutor
from farshift.loaders.acquire.fetch import FilePin, fetch_file
from farshift.core.errors import Unavailable
def fetched(pin):
    try:
        return fetch_file(FilePin.model_validate(pin)).read_bytes()[-40:].decode().strip()
    except Unavailable as error:
        return f"Unavailable: {error}"
pins = arguments["pins"]
with ThreadPoolExecutor(16) as threads:
    rounds = [list(threads.map(fetched, pins.values())) for _ in range(arguments["rounds"])]
print(json.dumps([dict(zip(pins, answers)) for answers in rounds]))
"""


@pytest.fixture(scope="module")
def told(shard, tmp_path_factory) -> tuple[dict[str, str], dict[str, str]]:
    """What the `hub` mirror says of each case, with its faults and again without: all at once, for the client takes
    its time."""
    files = {f"{name}/rows.tar": shard + f"{name:>40}".encode() for name in ON_A_HUB}
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, serving() as hub:
        patch.setenv("FARSHIFT_CACHE", str(home / "cache"))
        position = {"sort": "hub", "repo": "farshift/rows", "revision": hub.commit(files)}
        pins = {
            name: pin(files[f"{name}/rows.tar"], position | {"file": f"{name}/rows.tar"}).model_dump()
            for name in ON_A_HUB
        }
        for name, (faults, _) in ON_A_HUB.items():
            for pattern, fault in faults:
                hub.faults.plan(f"{pattern}/{name}/rows.tar", fault)
        first, second = hub_client.run(hub, home / "hf", FETCHED, pins=pins, rounds=2)
        assert hub.faults.left == 0, "every fault came"
        return first, second


@pytest.mark.parametrize("name", ON_A_HUB)
def test_a_hub_with_a_fault_gives_the_pinned_bytes_or_one_error_and_the_next_call_works(told, name):
    first, second = told
    reason = ON_A_HUB[name][1]
    if reason:
        assert first[name].startswith("Unavailable: rows.tar is not available: Hub farshift/rows@")
        assert reason in first[name]
        assert "\n" not in first[name]
    else:
        assert first[name] == name
    assert second[name] == name


def test_a_xet_store_that_cannot_be_reached_and_what_the_hub_does_not_have_are_one_error_each(hub, shard, tmp_path):
    hub.xet = "http://127.0.0.1:9"
    position = {"sort": "hub", "repo": "farshift/rows", "revision": hub.branches["main"], "file": "rows.tar"}
    wrong = {"HFValidationError": {"repo": "a/b/c"}, "RevisionNotFound": {"revision": "f" * 40}}
    pins = {"it": pin(shard, position).model_dump()}
    pins |= {reason: pin(shard, position | changes).model_dump() for reason, changes in wrong.items()}
    (output,) = hub_client.run(hub, tmp_path / "hf", FETCHED, pins=pins, rounds=1)
    assert output["it"].startswith("Unavailable: rows.tar is not available: Hub farshift/rows@")
    assert "HF_HUB_DISABLE_XET=1 disables the Xet store" in output["it"]
    for reason in wrong:
        assert output[reason].startswith("Unavailable: rows.tar is not available: Hub ")
        assert reason in output[reason]
