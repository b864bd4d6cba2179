"""Kept rows are compared by what they hold: repacked ones are the same, and a damaged file is another, never an error."""

from __future__ import annotations

import io

import numpy as np
import pytest
from farshift.leaderboard.operations.verify_metadata import _is_same_archive


def packed(write, **arrays) -> bytes:
    file = io.BytesIO()
    write(file, **arrays)
    return file.getvalue()


HELD = {"answers": np.arange(40), "names": np.array(["one", "other"]), "draws": np.linspace(0, 1, 15).reshape(5, 3)}
MADE = packed(np.savez_compressed, **HELD)


def test_rows_that_are_packed_otherwise_are_the_same():
    assert _is_same_archive(packed(np.savez, **HELD), MADE)
    assert not _is_same_archive(packed(np.savez, **HELD | {"answers": np.arange(40)[::-1]}), MADE)
    assert not _is_same_archive(packed(np.savez, answers=np.arange(40)), MADE)


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_whatever_bytes_are_changed_a_file_is_compared(write):
    locked, draws = packed(write, **HELD), np.random.default_rng(5)
    for _ in range(600):
        damaged = bytearray(locked)
        for position in draws.integers(0, len(locked), draws.integers(1, 6)).tolist():
            damaged[position] ^= int(draws.integers(1, 256))
        assert _is_same_archive(bytes(damaged[: int(draws.integers(1, len(locked) * 5))]), MADE) in (True, False)


def test_what_is_no_archive_is_not_the_same():
    alone = io.BytesIO()
    np.save(alone, np.arange(3))
    for content in (b"", b"PK", b"\x80\x04.", alone.getvalue(), b"\x93NUMPY\x01\x00\x10\x00{'shape': (1e99,)}"):
        assert not _is_same_archive(content, MADE)
