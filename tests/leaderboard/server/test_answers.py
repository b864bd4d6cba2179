"""Which coding is sent."""

from __future__ import annotations

import gzip

import pytest
from farshift.leaderboard.server.answers import ResponseBody, make_body_response
from fastapi import Request

CONTENT = b"the same again and again " * 100


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("", False),
        ("gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("gzip;q=1.0, zstd;q=0.5", True),
        ("zstd;q=0, gzip", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0, br", False),
        ("br, identity", False),
        ("GZIP ; Q=0.8", True),
    ],
)
def test_a_body_is_compressed_for_a_client_that_accepts_it(accepted, compressed):
    request = Request({"type": "http", "method": "GET", "headers": [(b"accept-encoding", accepted.encode())]})
    answer = make_body_response(request, ResponseBody(CONTENT, "text/plain"))
    assert ("Content-Encoding" in answer.headers) == compressed
    assert (gzip.decompress(answer.body) if compressed else answer.body) == CONTENT
    small = make_body_response(request, ResponseBody(b"x", "text/plain"))
    assert small.body == b"x"
