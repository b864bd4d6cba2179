"""The socket that a board is served at."""

from __future__ import annotations

import socket

import pytest
from farshift import FarshiftError
from farshift.leaderboard.server.serving import open_listening_socket


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
