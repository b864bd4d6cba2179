"""Which coding is sent, and which bytes of a range."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pytest
from farshift.leaderboard.server.answers import ResponseBody, choose_coding, parse_range, to_json_body


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", ""),
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=1.0, zstd;q=0.5", "gzip"),
        ("zstd;q=0, gzip", "gzip"),
        ("*", "zstd"),
        ("*;q=0", ""),
        ("gzip;q=0", ""),
        ("br, identity", ""),
        ("GZIP ; Q=0.8", "gzip"),
    ],
)
def test_the_coding_that_a_client_takes_is_chosen(accepted, coding):
    assert choose_coding(accepted) == coding


@pytest.mark.parametrize(
    ("wanted", "span"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=2-5", (2, 6)),
        ("bytes=2-", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes=5-99", (5, 10)),
        ("bytes=10-", (10, 10)),
        ("bytes=-0", (10, 10)),
        ("bytes=5-2", None),
        ("bytes=0-1,3-4", None),
        ("lines=0-1", None),
        ("bytes=-", None),
    ],
)
def test_a_range_is_the_bytes_that_it_names(wanted, span):
    assert parse_range(wanted, 10) == span


def test_compressed_bodies_unpack_to_the_body():
    content = b"the same again and again " * 100
    stored = ResponseBody(content, "text/plain")
    assert gzip.decompress(stored.gzip) == content
    assert pa.Codec("zstd").decompress(stored.zstd, len(content)).to_pybytes() == content
    assert stored.to_compressed().content == content
    assert ResponseBody(content, "text/plain").gzip == stored.gzip, "the same bytes at any time"


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        None,
        "ü",
        {"a": [], "b": {}, "c\n": [{"d": [1.5, None]}, {}], 'e"': {"f": {"g": [True]}}},
        [[1], {"a": 2}],
    ],
)
def test_json_that_is_written_piece_by_piece_is_the_json_of_the_whole(value):
    assert to_json_body(value).content == json.dumps(value, separators=(",", ":")).encode()
    assert to_json_body({"numbers": {1: 2}}).content == b'{"numbers":{"1":2}}'
