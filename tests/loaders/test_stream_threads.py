"""Reading ahead: within its bytes, on threads that begin late and end early."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from farshift import stream
from farshift.core import retry
from farshift.core.errors import BadData
from farshift.loaders.remote import prefetch
from farshift.loaders.remote.prefetch import THREADS, prefetch_tasks
from farshift.loaders.split import open_split
from hypothesis import given
from hypothesis import strategies as st
from range_server import serving

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
        known = replace(part.known, source=part.known.source.set_column(1, "check", [checks]))
        wrong = replace(part, known=known)
        with pytest.raises(BadData, match="differs from the manifest"):
            list(wrong.batches(10))
        batches.close()
    del batches
    gc.collect()
    assert ends()


def test_a_reader_that_waits_for_a_server_ends_when_it_is_closed(shards, monkeypatch):
    monkeypatch.setattr(retry, "PAUSE", 60.0)
    monkeypatch.setattr(prefetch, "THREADS", 2)  # the batch that is wanted, and the next
    with serving(shards) as site:
        batches = stream(NAME, "id_test", site.url, memory=4_000).batches(1)
        next(batches)
        while len([path for path, *_ in site.asked if path.endswith(".tar")]) < 2:
            time.sleep(0.005)  # until the second batch has been asked for
        site.faults |= {path: ["503"] * 50 for path in site.files}
        next(batches)  # the third is now asked for, in vain
        assert reading() != []
        batches.close()
        assert ends()


LEFT_OPEN = """
import sys
from farshift.core import retry
from farshift.loaders.remote import prefetch
from farshift.loaders.stream.open import stream
retry.PAUSE, prefetch.THREADS = 60.0, 2  # the batch that is wanted, and the next
batches = stream("prefix_sums/32_to_64", "id_test", sys.argv[1], memory=4_000).batches(1)
next(batches)
print("open", flush=True)
sys.stdin.readline()
next(batches)  # the third is now asked for, in vain
"""


def test_a_program_that_leaves_its_iterator_open_ends_without_waiting_for_the_server(shards):
    with serving(shards) as site:
        program = [sys.executable, "-c", LEFT_OPEN, site.url]
        with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "open\n"
            while len([path for path, *_ in site.asked if path.endswith(".tar")]) < 2:
                time.sleep(0.005)
            site.faults |= {path: ["503"] * 50 for path in site.files}
            process.communicate("go on\n", timeout=120)
        assert process.returncode == 0


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
from farshift.loaders.remote import files as remote_files
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
