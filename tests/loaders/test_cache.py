"""The decoded cache: a damaged file is never read, a full disk loses nothing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from farshift import FarshiftError, load
from farshift.core.files import write_atomically
from farshift.loaders.acquire.piecewise import ColumnFiles
from farshift.loaders.acquire.source import find_source
from farshift.loaders.cache.entries import list_entries
from farshift.loaders.cache.store import load_or_build_table
from farshift.splits.schema import Field, Schema


def test_a_source_is_decoded_once_and_then_mapped(cache, monkeypatch):
    source = find_source("modadd97")
    first = source.table()
    monkeypatch.setattr(type(source), "write", lambda *_: pytest.fail("built again"))
    assert source.table().equals(first)
    ids = first["row_id"].to_pylist()
    assert ids == sorted(ids)


@pytest.mark.attack("disk", "a full disk while data are decoded")
def test_a_full_disk_is_one_clear_line_and_leaves_no_half_file(cache, monkeypatch):
    real = os.fsync

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("farshift.loaders.cache.store.os.fsync", full)
    with pytest.raises(FarshiftError, match=r"no space left for .*FARSHIFT_CACHE"):
        load("modadd97/xi35")
    monkeypatch.setattr("farshift.loaders.cache.store.os.fsync", real)
    left = [path for path in cache.rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    assert left == []
    assert len(load("modadd97/xi35")) == 4704


def test_a_write_is_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "file"
    write_atomically(target, b"old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


SLOW = """
import sys, time, pyarrow as pa
from pathlib import Path
from farshift.loaders.cache.store import load_or_build_table
def build():
    open(sys.argv[2], "a").write("built\\n")
    time.sleep(float(sys.argv[3]))
    return pa.table({"x": list(range(1000))})
print(load_or_build_table(Path(sys.argv[1]), build).num_rows)
"""


def slow(tmp_path: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOW, str(tmp_path / "t.arrow"), str(tmp_path / "log"), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_want_the_same_table_build_it_once(tmp_path):
    children = [slow(tmp_path, 0.5) for _ in range(2)]
    assert {child.communicate(timeout=180)[0].strip() for child in children} == {"1000"}
    assert (tmp_path / "log").read_text() == "built\n"


def test_a_builder_that_is_killed_frees_its_lock(tmp_path):
    child = slow(tmp_path, 60)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (tmp_path / "log").exists():
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    table = load_or_build_table(tmp_path / "t.arrow", lambda: pa.table({"x": [1, 2]}))
    assert table.num_rows == 2


def test_threads_that_write_one_file_each_write_it_whole(tmp_path):
    contents = [bytes([number]) * 10_000 for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda content: write_atomically(tmp_path / "a", content), contents * 5))
    assert (tmp_path / "a").read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_columns_that_a_killed_build_left_belong_to_what_was_built_and_go_with_the_next_build(cache):
    target = cache / "sources" / "mine-v1.arrow"
    left = ColumnFiles(Schema((Field("a", "int64", "input"),)), target.with_name(f".{target.name}.123.tmp"))
    left.append(pa.table({"a": [1, 2, 3]}))
    (entry,) = list_entries("sources")
    assert entry.path == target
    assert load_or_build_table(target, lambda: pa.table({"a": [1]})).num_rows == 1
    assert sorted(path.name for path in target.parent.iterdir()) == [
        "mine-v1.arrow",
        "mine-v1.arrow.lock",
        "mine-v1.arrow.ok",
    ]
