"""Reading ahead: within its bytes, on threads that begin late and end early."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from farshift import stream
from farshift.core import retry
from farshift.core.errors import BadData
from farshift.loaders.split import open_split
from farshift.loaders.stream import part as streamed_part
from farshift.loaders.stream.part import THREADS, prefetch_tasks
from hypothesis import given
from hypothesis import strategies as st
from servers import serve_folder

NAME = "prefix_sums/32_to_64"


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> Path:
    return open_split(NAME).part("id_test").to_webdataset(tmp_path_factory.mktemp("exports") / "shards", 300_000)


def reading() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("farshift-stream")]


def ends() -> bool:
    """Whether no thread of a reader is left, soon."""
    deadline = time.monotonic() + 60
    while reading() and time.monotonic() < deadline:
        time.sleep(0.005)
    return not reading()


@pytest.mark.parametrize("ending", ["used up", "closed", "forgotten", "failed"])
def test_no_thread_outlives_its_iterator(shards, ending):
    part = replace(stream(NAME, "id_test", shards), memory=40_000)
    batches = part.batches(10, seed=1)
    assert reading() == [], "nothing is read before a batch is asked for"
    next(batches)
    assert len(reading()) <= THREADS
    if ending == "used up":
        assert len(list(batches)) == 99
    elif ending == "closed":
        batches.close()
        assert list(batches) == []
    elif ending == "failed":
        checks = np.zeros(len(part), np.uint64)
        known = part.source.set_column(1, "check", [checks])
        wrong = replace(part, source=known)
        with pytest.raises(BadData, match="differs from the manifest"):
            list(wrong.batches(10))
        batches.close()
    del batches
    gc.collect()
    assert ends()


def test_a_reader_that_waits_for_a_server_ends_when_it_is_closed(shards, monkeypatch):
    monkeypatch.setattr(retry, "PAUSE", 60.0)
    monkeypatch.setattr(streamed_part, "THREADS", 2)  # the batch that is wanted, and the next
    with serve_folder(shards) as site:
        batches = stream(NAME, "id_test", site.url, memory=4_000).batches(1)
        next(batches)
        while len([path for path, *_ in site.asked if path.endswith(".tar")]) < 2:
            time.sleep(0.005)  # until the second batch has been asked for
        site.faults |= {path: ["503"] * 50 for path in site.files}
        next(batches)  # the third is now asked for, in vain
        assert reading() != []
        batches.close()
        assert ends()


sizes = st.lists(st.integers(1, 60), max_size=40)


@given(sizes=sizes, most=st.integers(1, 150))
def test_what_is_held_stays_within_its_bytes_and_comes_in_order(sizes, most):
    locked, peak, lock = [0], [0], threading.Lock()

    def task(size: int):
        def read(_: threading.Event) -> int:
            with lock:
                locked[0] += size
                peak[0] = max(peak[0], locked[0])
            return size

        return size, read

    given_out = []
    for size in prefetch_tasks(map(task, sizes), most):
        given_out.append(size)
        locked[0] -= size
    assert given_out == sizes
    assert peak[0] <= max([most, *sizes])


MEASURED = """
import sys, tracemalloc
from farshift.loaders.stream import files as remote_files
from farshift.loaders.stream.open import stream
remote_files.GAP = 0  # what lies between rows is read along in pieces of remote_files.LONGEST, which is no matter of the part
part = stream("prefix_sums/32_to_64", "id_test", sys.argv[1], memory=100_000)
next(part.batches(1000))
batches = part.batches(10, seed=1)
tracemalloc.start()
for batch in batches:
    pass
print(tracemalloc.get_traced_memory()[1])
"""


def test_an_epoch_holds_some_blocks_and_never_the_part(shards, python):
    done = python.run("-c", MEASURED, shards)
    assert done.returncode == 0, done.stderr
    full = sum(path.stat().st_size for path in shards.glob("*.tar"))
    assert int(done.stdout) < 400_000 < full / 2
