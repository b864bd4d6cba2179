"""Connections: the socket of a server; those that send nothing do not keep others out, and do not fill the log."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from farshift import FarshiftError
from farshift.leaderboard.server import serving
from farshift.leaderboard.server.serving import (
    BoundedProtocol,
    LogRequests,
    handle_loop_error,
    limit_connections,
    open_listening_socket,
)
from running import serving_app

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        return await send({"type": "lifespan.startup.complete"})
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def run_server(most: int) -> Iterator[tuple[str, int]]:
    """The address of a server that accepts so many connections."""
    protocol = type("Few", (BoundedProtocol,), {"most": most})
    with serving_app(LogRequests(hello), http=protocol, log_config=None, lifespan="on") as url:
        yield "127.0.0.1", int(url.rpartition(":")[2])


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch):
    monkeypatch.setattr(serving, "_counts", {})


def get(line: socket.socket) -> None:
    line.sendall(GET)
    answer = b""
    while not answer.endswith(b"hello"):
        piece = line.recv(1000)
        assert piece, "it was closed"
        answer += piece


@pytest.mark.attack("visitor", "many connections that send nothing")
def test_where_all_connections_are_in_use_the_one_that_has_waited_longest_is_closed(caplog):
    with run_server(most=3) as address, ExitStack() as stack:
        lines = []
        for number in range(9):
            lines.append(stack.enter_context(socket.create_connection(address, 60)))
            if number >= 3:
                assert lines[number - 3].recv(1) == b"", "the longest without a request"
        for line in lines[6:]:
            get(line)
    assert [record.getMessage() for record in caplog.records if record.name == "farshift.connections"] == [
        "1 connections closed: at most 3 at once"
    ]


@pytest.mark.attack("visitor", "headers of requests that arrive slowly, or never")
@pytest.mark.parametrize("first", [b"", GET], ids=["the first request", "a later one"])
def test_headers_that_do_not_end_are_not_waited_for(monkeypatch, first):
    monkeypatch.setattr(serving, "HEADERS_SECONDS", 0.2)
    with run_server(most=10) as address, socket.create_connection(address, 60) as line:
        if first:
            get(line)
        line.sendall(b"GET / HTTP/1.1\r\n")
        line.settimeout(0.02)
        while True:
            try:
                line.sendall(b"X: x\r\n")
                assert line.recv(1) == b""
                break
            except TimeoutError:
                pass
            except OSError:  # closed while it was sending
                break


@pytest.mark.attack("visitor", "more connections than a process may have open files")
def test_what_cannot_be_accepted_is_one_line_a_minute(caplog, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(serving.time, "monotonic", lambda: now[0])
    loop = asyncio.new_event_loop()
    refused = {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many open files")}
    for _ in range(500):
        handle_loop_error(loop, refused)
    now[0] += 60
    handle_loop_error(loop, refused)
    assert [record.getMessage() for record in caplog.records] == [
        f"{count} connections not accepted: [Errno 24] Too many open files" for count in (1, 500)
    ]
    handle_loop_error(loop, {"message": "something else"})
    assert caplog.records[-1].getMessage() == "something else"
    assert caplog.records[-1].levelno == logging.ERROR
    loop.close()


@pytest.mark.parametrize(("files", "most"), [(-1, 2000), (16384, 2000), (1024, 320), (256, 16)])
def test_there_are_fewer_connections_than_open_files(monkeypatch, files, most):
    monkeypatch.setattr(serving.resource, "getrlimit", lambda _: (files, files))
    assert limit_connections() == most


def test_connections_send_what_they_are_given_at_once():
    with open_listening_socket("127.0.0.1", 0) as line, socket.create_connection(line.getsockname()):
        accepted, _ = line.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.attack("visitor", "clients that do not take the answers to their requests")
@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="an option of Linux")
def test_a_client_that_takes_no_data_is_dropped(monkeypatch):
    monkeypatch.setattr("farshift.leaderboard.server.serving.IDLE_SECONDS", 1)
    with open_listening_socket("127.0.0.1", 0) as line, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(line.getsockname())
        accepted, _ = line.accept()
        with accepted, pytest.raises(TimeoutError):
            while True:
                accepted.sendall(b"x" * 65536)


def test_a_port_that_is_taken_is_named():
    with open_listening_socket("127.0.0.1", 0) as line:
        port = line.getsockname()[1]
        with pytest.raises(FarshiftError, match=f"127.0.0.1, port {port}: .*: choose another"):
            open_listening_socket("127.0.0.1", port)
