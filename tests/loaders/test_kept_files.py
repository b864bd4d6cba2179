"""A cached file returns what its file returns, and requests each of its blocks once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from threading import Event

import numpy as np
import pytest
from farshift.core.errors import Unavailable
from farshift.loaders.stream import files
from farshift.loaders.stream.files import CachedFile, FolderFile, cache_in_memory
from hypothesis import given
from hypothesis import strategies as st

BODY = np.random.default_rng(0).bytes(300)
BLOCK = 7


@pytest.fixture(autouse=True, scope="module")
def _small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK", BLOCK)
        yield


@dataclass
class Counted:
    """A file that counts how often each byte is requested, and fails as often as it is told to."""

    failures: int = 0
    requested: np.ndarray = field(default_factory=lambda: np.zeros(len(BODY), int))
    name, size, identity = "counted", len(BODY), "one"

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        if self.failures:
            self.failures -= 1
            raise Unavailable("gone for now")
        self.requested[start:stop] += 1
        return BODY[start:stop]


pairs = st.tuples(st.integers(0, 300), st.integers(0, 300)).map(lambda pair: tuple(sorted(pair)))


@given(st.lists(pairs, max_size=20))
def test_every_range_is_right_and_the_blocks_around_it_are_requested_once(ranges):
    file = Counted()
    cached = CachedFile(file)
    expected = np.zeros(len(BODY), int)
    for start, stop in ranges:
        assert cached.read(start, stop, Event()) == BODY[start:stop]
        expected[start // BLOCK * BLOCK : -(-stop // BLOCK) * BLOCK] = 1
    assert (file.requested == expected).all()


def test_threads_read_together_and_a_failure_is_the_reader_s_own():
    file = Counted()
    cached = CachedFile(file)
    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(lambda start: cached.read(start % 250, start % 250 + 50, Event()), range(0, 4000, 7)))
    assert all(content == BODY[start % 250 :][:50] for start, content in zip(range(0, 4000, 7), result, strict=True))
    assert file.requested.max() == 1
    again = CachedFile(Counted(failures=1))
    with pytest.raises(Unavailable):
        again.read(0, 9, Event())
    assert again.read(0, 9, Event()) == BODY[:9]


def test_a_copy_begins_with_nothing_and_what_is_forgotten_is_requested_anew():
    file = Counted()
    cached = CachedFile(file)
    cached.read(0, 300, Event())
    copy = ForkingPickler.loads(ForkingPickler.dumps(cached))
    assert copy.read(5, 7, Event()) == BODY[5:7]
    assert copy.file.requested[:8].tolist() == [2] * 7 + [1]
    cached.forget()
    cached.read(0, 3, Event())
    assert file.requested[:8].tolist() == [2] * 7 + [1]


def test_files_are_cached_where_they_leave_memory_for_rows_and_are_remote(tmp_path):
    (tmp_path / "here").write_bytes(BODY)
    here = FolderFile.open(tmp_path / "here")
    assert cache_in_memory([here], 1000) == ((here,), 1000)
    some, left = cache_in_memory([here, Counted()], 400)
    assert (some[0], type(some[1]), left) == (here, CachedFile, 100)
    assert cache_in_memory([Counted()], 399)[1] == 399
