"""A kept file gives what its file gives, and asks for no byte of it twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from threading import Event

import numpy as np
import pytest
from farshift.core.errors import Unavailable
from farshift.loaders.remote.cached_files import CachedFile, cache_in_memory, merge_spans, subtract_spans
from farshift.loaders.remote.folder import FolderFile
from hypothesis import given
from hypothesis import strategies as st

BODY = np.random.default_rng(0).bytes(300)


@dataclass
class Counted:
    """A file that counts how often each byte is asked for, and fails as often as it is told to."""

    failures: int = 0
    asked: np.ndarray = field(default_factory=lambda: np.zeros(len(BODY), int))
    name, size, identity = "counted", len(BODY), "one"

    def read(self, start: int, stop: int, halt: Event) -> bytes:
        if self.failures:
            self.failures -= 1
            raise Unavailable("gone for now")
        self.asked[start:stop] += 1
        return BODY[start:stop]


pairs = st.tuples(st.integers(0, 300), st.integers(0, 300)).map(lambda pair: tuple(sorted(pair)))


@given(st.lists(pairs, max_size=20))
def test_every_range_is_right_and_every_byte_asked_for_at_most_once(wanted):
    file = Counted()
    locked = CachedFile(file, along=0)
    for start, stop in wanted:
        assert locked.read(start, stop, Event()) == BODY[start:stop]
    union = np.zeros(len(BODY), int)
    for start, stop in wanted:
        union[start:stop] = 1
    assert (file.asked == union).all()


@given(st.lists(pairs, max_size=12), pairs)
def test_spans_are_joined_and_taken_away_byte_by_byte(spans, whole):
    covered = np.zeros(300, bool)
    for start, stop in spans:
        covered[start:stop] = True
    left = np.zeros(300, bool)
    result = merge_spans(spans)
    assert result == sorted(result)
    for start, stop in subtract_spans(*whole, result):
        assert start < stop
        left[start:stop] = True
    own = np.zeros(300, bool)
    own[slice(*whole)] = True
    assert (left == (own & ~covered)).all()


def test_threads_read_together_and_a_failure_is_the_reader_s_own():
    file = Counted()
    locked = CachedFile(file, along=0)
    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(lambda start: locked.read(start % 250, start % 250 + 50, Event()), range(0, 4000, 7)))
    assert all(content == BODY[start % 250 :][:50] for start, content in zip(range(0, 4000, 7), result, strict=True))
    assert file.asked.max() == 1
    again = CachedFile(Counted(failures=1))
    with pytest.raises(Unavailable):
        again.read(0, 9, Event())
    assert again.read(0, 9, Event()) == BODY[:9]


def test_a_copy_begins_with_nothing_and_what_is_forgotten_is_asked_for_anew():
    file = Counted()
    locked = CachedFile(file)
    locked.read(0, 300, Event())
    copy = ForkingPickler.loads(ForkingPickler.dumps(locked))
    assert copy.read(5, 9, Event()) == BODY[5:9]
    assert copy.file.asked[5:9].tolist() == [2] * 4, "its own file's first reading is the second"
    locked.forget()
    locked.read(0, 3, Event())
    assert file.asked[:4].tolist() == [2, 2, 2, 1]


def test_a_scrap_between_missing_bytes_is_fetched_along_with_them():
    file = Counted()
    locked = CachedFile(file, along=5)
    for start, stop in ((10, 15), (100, 106), (0, 200)):
        assert locked.read(start, stop, Event()) == BODY[start:stop]
    assert (file.asked[10:15] == 2).all()
    assert (file.asked[100:106] == 1).all()


def test_files_are_kept_where_they_leave_room_for_rows_and_lie_elsewhere(tmp_path):
    (tmp_path / "here").write_bytes(BODY)
    here = FolderFile.open(tmp_path / "here")
    assert cache_in_memory([here], 1000) == ((here,), 1000)
    files, left = cache_in_memory([here, Counted()], 400)
    assert (files[0], type(files[1]), left) == (here, CachedFile, 100)
    assert cache_in_memory([Counted()], 399)[1] == 399
