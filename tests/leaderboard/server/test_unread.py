"""A client that sends on after it is refused reads why; one that sends without end is left."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from farshift.leaderboard.server.drain_body import DrainRequestBody

LENGTH = [(b"content-length", b"1000000")]


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    """Answers without a look at the body."""
    await send({"type": "http.response.start", "status": scope.get("status", 413), "headers": []})
    await send({"type": "http.response.body", "body": b"no"})


def read_before_the_answer(pieces: list[Any], headers: Any = LENGTH, **options: Any) -> int:
    """How many pieces of a body are taken before a refusal is sent."""
    accepted = 0
    status = options.pop("status", 413)

    async def receive() -> Any:
        nonlocal accepted
        if accepted == len(pieces):
            await asyncio.Event().wait()  # a client that says no more
        accepted += 1
        return {"type": "http.request", "body": pieces[accepted - 1], "more_body": accepted < len(pieces)}

    async def send(message: Any) -> None:
        sent.append((message["type"], accepted))

    sent: list[Any] = []
    scope = {"type": "http", "headers": headers, "status": status}
    # In a thread of its own: another test's browser may have an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, DrainRequestBody(refusing, **options)(scope, receive, send)).result()
    assert [kind for kind, _ in sent] == ["http.response.start", "http.response.body"]
    return int(sent[0][1])


def test_what_a_refused_client_still_sends_is_read_before_it_is_answered():
    assert read_before_the_answer([b"x" * 100] * 10) == 10


@pytest.mark.attack("visitor", "endless bodies of refused requests")
def test_a_refused_body_is_read_to_a_bound_of_bytes_and_time():
    assert read_before_the_answer([b"x" * 100] * 1000, most=1000) == 10
    assert read_before_the_answer([], seconds=0.01) == 0


def test_nothing_is_waited_for_that_does_not_come_or_comes_slowly():
    assert read_before_the_answer([b"x"] * 3, headers=[]) == 0
    assert read_before_the_answer([b"x"] * 3, headers=[*LENGTH, (b"expect", b"100-continue")]) == 0
    assert read_before_the_answer([b"x"] * 3, status=408) == 0
