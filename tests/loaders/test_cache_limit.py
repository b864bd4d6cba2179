"""The cache's limit: what was used least recently goes, under the eyes of many processes, and nobody reads half a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from farshift import FarshiftError, load
from farshift.loaders.cache.entries import REMADE, clear_cache, format_size, list_entries, parse_size, read_cache_limit
from farshift.loaders.cache.store import is_intact, load_or_build_table
from hypothesis import given
from hypothesis import strategies as st


def thousand() -> pa.Table:
    return pa.table({"x": list(range(1000))})


def stored(cache: Path, name: str, days: float = 0) -> None:
    path = cache / "sources" / f"{name}.arrow"
    load_or_build_table(path, thousand)
    then = time.time() - days * 86_400
    os.utime(f"{path}.ok", (then, then))


def names() -> list[str]:
    return [entry.name.removesuffix(".arrow") for entry in list_entries(*REMADE)]


def size() -> int:
    return sum(entry.bytes for entry in list_entries(*REMADE))


def test_the_least_recently_used_goes_until_the_rest_fits(cache, monkeypatch):
    for name, days in (("a", 3), ("b", 9), ("c", 1), ("d", 5)):
        stored(cache, name, days)
    item = size() // 4
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", str(3 * item + item // 2))
    stored(cache, "e")
    assert names() == ["a", "c", "e"]


def test_without_a_write_nothing_goes(cache, monkeypatch):
    for name in "abc":
        stored(cache, name)
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    stored(cache, "b")
    assert names() == ["a", "b", "c"]


def test_a_table_larger_than_the_limit_is_read_and_not_kept(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    path = cache / "sources" / "a.arrow"
    for _ in range(2):
        assert load_or_build_table(path, lambda: pa.table({"x": list(range(9000))}))["x"].to_pylist() == list(
            range(9000)
        )
        assert names() == []


def test_a_whole_load_works_under_any_limit(cache, monkeypatch):
    expected = load("modadd97/xi35").arrow()
    for limit in ("1", "200kB", "1GB"):
        monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", limit)
        clear_cache(everything=True)
        assert load("modadd97/xi35").arrow().equals(expected)
        assert size() <= parse_size(limit, "")


def test_responses_are_neither_counted_nor_removed(cache, monkeypatch):
    response = cache / "responses" / "ab" / f"{'ab' * 32}.json"
    response.parent.mkdir(parents=True)
    response.write_bytes(b"x" * 50_000)
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "20kB")
    stored(cache, "a")
    assert names() == ["a"]
    assert response.exists()


def test_a_limit_that_is_no_size_is_refused_before_any_work(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "10 apples")
    with pytest.raises(FarshiftError, match="FARSHIFT_CACHE_LIMIT: '10 apples' is not a size: write for example 10GB"):
        load_or_build_table(cache / "sources" / "a.arrow", lambda: pytest.fail("built"))


def test_no_limit_is_none(monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", " ")
    assert read_cache_limit() is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10GB", 10**10), ("500 mb", 5 * 10**8), ("1.5GiB", 3 * 2**29), ("4096", 4096), ("2k", 2000), (" 1TB ", 10**12)],
)
def test_sizes_are_read_as_people_write_them(text, expected):
    assert parse_size(text, "limit") == expected


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1e9", "ten", "10XB", "0", "0.1B", "1GBs", "1 G B", "nan"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(FarshiftError, match="limit: "):
        parse_size(text, "limit")


@given(st.integers(1, 10**14))
def test_a_size_in_words_is_read_back_to_within_its_digits(number):
    back = parse_size(format_size(number).replace("bytes", "B"), "size")
    assert abs(back - number) <= 0.05 * number


WORKER = """
import os, sys, time
import numpy as np, pyarrow as pa
from hashlib import sha256
from pathlib import Path
from farshift.loaders.cache.store import is_intact, hold_lock, write_marker, load_or_build_table, write_atomically
from farshift.loaders.cache.entries import clear_cache
cache, seed, calls = Path(os.environ["FARSHIFT_CACHE"]), int(sys.argv[1]), int(sys.argv[2])
draw = np.random.default_rng(seed)
print("begun", flush=True)
for _ in range(calls):
    number = int(draw.integers(0, 8))
    content = bytes([number]) * 3000
    file = cache / "files" / "aa" / sha256(content).hexdigest()
    def build():
        if not is_intact(file):
            with hold_lock(file):
                if not is_intact(file):
                    write_atomically(file, content)
                    write_marker(file, sha256(content).hexdigest())
        time.sleep(draw.random() * 0.004)
        try:
            assert file.read_bytes() == content
        except FileNotFoundError:
            pass  # another process has just removed it
        return pa.table({"x": np.arange(number, number + 2000)})
    table = load_or_build_table(cache / "sources" / f"t{number}.arrow", build)
    time.sleep(draw.random() * 0.002)
    assert (table["x"].to_numpy() == np.arange(number, number + 2000)).all()
    if draw.random() < 0.05:
        clear_cache(["sources", "files"][: int(draw.integers(1, 3))])
print("done", flush=True)
"""


def test_under_many_processes_no_reader_sees_half_a_file_and_the_cache_ends_under_its_limit(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "60kB")

    def worker(number: int, calls: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORKER, str(number), str(calls)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    workers, victim = [worker(number, 60) for number in range(2)], worker(9, 10**6)
    assert victim.stdout.readline() == "begun\n"
    time.sleep(0.3)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    for child in workers:
        output, complaint = child.communicate(timeout=180)
        assert output == "begun\ndone\n", complaint
    stored(cache, "last")
    assert 0 < size() <= 60_000
    assert all(is_intact(entry.path) for entry in list_entries(*REMADE) if entry.markers())
