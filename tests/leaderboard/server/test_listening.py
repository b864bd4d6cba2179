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


def test_a_port_that_is_taken_is_named():
    with open_listening_socket("127.0.0.1", 0) as line:
        port = line.getsockname()[1]
        with pytest.raises(FarshiftError, match=f"127.0.0.1, port {port}: .*: choose another"):
            open_listening_socket("127.0.0.1", port)
