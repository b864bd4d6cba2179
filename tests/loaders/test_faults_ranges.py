"""Byte ranges of a file on a web server, through every fault of a network: these very bytes, or one error."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import numpy as np
import pytest
from farshift.core import retry
from farshift.core.draws import draw_bits
from farshift.core.errors import Unavailable
from farshift.loaders.files import http
from farshift.loaders.stream.files import HttpFile
from hub_faults import (
    LONG,
    SHORT,
    Cut,
    Fault,
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

CONTENT = draw_bits("tests/ranges", np.arange(25_000, dtype=np.uint64)).tobytes()  # 200,000 bytes


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with serving() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "PAUSE", 0.002)
        patch.setattr(http, "STALL", LONG)
        yield hub


@pytest.fixture
def file(hub) -> HttpFile:
    hub.faults.clear()
    hub.commit({"rows.tar": CONTENT})
    return HttpFile.open(hub.plain("rows.tar"))


def plan(hub: Hub, *faults: Fault | Meanwhile) -> None:
    for fault in faults:
        hub.faults.plan("GET /plain/*/rows.tar", fault)


def test_a_range_is_asked_for_and_no_more(hub, file):
    hub.requests.clear()
    assert file.read(1_000, 3_000, Event()) == CONTENT[1_000:3_000]
    assert file.read(5, 5, Event()) == b""
    assert [request.range for request in hub.requests] == ["bytes=1000-2999"]


SURVIVED = {
    "cut at once": [Cut(0)],
    "cut": [Cut(1_000)],
    "reset": [Cut(1_000, reset=True)],
    "cut three times": [Cut(1_000)] * 3,
    "a length that is too long": [WrongLength(100)],
    "a length that is too short": [WrongLength(-100)],
    "busy": [Refuse(429, "0"), Refuse(503), Refuse(500)],
    "stalled": [Stall(1_000)],
    "stalled before a byte": [Stall(0)],
    "slow": [Trickle(20_000, 0.01)],
    "another range": [OtherRange(1)],
    "another range after a cut": [Cut(1_000), OtherRange(3)],
}


@pytest.mark.parametrize("faults", SURVIVED.values(), ids=SURVIVED)
def test_a_passing_fault_costs_time_and_nothing_else(hub, file, faults, monkeypatch):
    monkeypatch.setattr(http, "STALL", patience(*faults))
    plan(hub, *faults)
    assert file.read(10_000, 110_000, Event()) == CONTENT[10_000:110_000]
    assert hub.faults.left == 0, "every fault came"


REFUSED = {
    "absent": ([Refuse(404)], Unavailable, "answered 404"),
    "down": ([Refuse(500)] * retry.TRIES, Unavailable, "could not be read in 6 tries .the server answered 500"),
    "busy for good": ([Refuse(429, "0")] * retry.TRIES, Unavailable, "answered 429.*try again later"),
    "cut for good": ([Cut(0)] * retry.TRIES, Unavailable, "bytes 10000 to 110000 could not be read in 6 tries"),
    "stalled for good": ([Stall(0)] * 2, Unavailable, f"no byte was received for {SHORT:g} seconds"),
    "no ranges": ([IgnoreRange()], Unavailable, "does not support range requests"),
    "no ranges after a cut": ([Cut(1_000), IgnoreRange()], Unavailable, "does not support range requests"),
    "always another range": ([OtherRange(1)] * retry.TRIES, Unavailable, "Content-Range is"),
}


@pytest.mark.parametrize(("faults", "sort", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_lasting_fault_is_one_error_and_the_next_read_works(hub, file, faults, sort, reason, monkeypatch):
    monkeypatch.setattr(http, "STALL", patience(*faults))
    if Stall(0) in faults:
        monkeypatch.setattr(retry, "TRIES", len(faults))
    plan(hub, *faults)
    with pytest.raises(sort, match=reason) as refused:
        file.read(10_000, 110_000, Event())
    assert "\n" not in str(refused.value)
    monkeypatch.setattr(http, "STALL", LONG)
    assert file.read(10_000, 110_000, Event()) == CONTENT[10_000:110_000]
