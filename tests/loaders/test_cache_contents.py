"""The cache as its owner sees it: listed, verified, cleared, kept within its limit; never a link followed, and nobody
reads half a file."""

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
from farshift.core.errors import UnknownName
from farshift.core.files import hold_lock
from farshift.loaders.cache.entries import (
    REMADE,
    clear_cache,
    format_size,
    list_contents,
    list_entries,
    parse_size,
    read_cache_limit,
    verify_cache,
)
from farshift.loaders.cache.store import is_intact, load_or_build_table, load_or_write, write_marker
from hypothesis import given
from hypothesis import strategies as st

DAY = 86_400


def stored(cache: Path, place: str, rows: int = 100, days: float = 0) -> Path:
    """A table in the cache, last used so many days ago."""
    path = cache / place
    load_or_build_table(path, lambda: pa.table({"x": list(range(rows))}))
    aged(path.with_name(path.name + ".ok"), days)
    return path


def aged(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then))


def kept(cache: Path, place: str, days: float = 0) -> Path:
    """A file without a marker, as a response is."""
    path = cache / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 10)
    aged(path, days)
    return path


@pytest.fixture
def full(cache: Path) -> Path:
    """One entry of each kind, the oldest first."""
    digest = "ab" * 32
    kept(cache, f"files/ab/{digest}")
    write_marker(cache / "files" / "ab" / digest, "f" * 64)
    aged(cache / "files" / "ab" / f"{digest}.ok", 60)
    kept(cache, f"trees/{'ef' * 20}")
    write_marker(cache / "trees" / ("ef" * 20), "f" * 64)
    aged(cache / "trees" / f"{'ef' * 20}.ok", 55)
    stored(cache, "sources/made-v1-0123-45.arrow", days=50)
    stored(cache, "splits/made-split-0123-45.arrow", days=40)
    kept(cache, f"images/{digest}.npy")
    write_marker(cache / "images" / f"{digest}.npy", "f" * 64)
    aged(cache / "images" / f"{digest}.npy.ok", 25)
    stored(cache, "features/resnet-50-0123456789abcdef/0123.arrow", days=22)
    stored(cache, "tokens/bert-0123456789abcdef.arrow", days=21)
    kept(cache, f"responses/cd/{'cd' * 32}.json", days=10)
    return cache


def left(cache: Path) -> list[str]:
    return [entry.kind for entry in list_entries()]


def test_each_kind_is_listed_with_its_size_the_least_recently_used_first(full):
    output = list_contents()
    order = ["files", "trees", "sources", "splits", "images", "features", "tokens"]
    assert [entry["kind"] for entry in output["entries"]] == order
    assert output["kinds"].keys() == {*order, "responses"}
    on_disk = [path for path in full.rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    assert output["bytes"] == sum(path.stat().st_size for path in on_disk)
    assert sum(kind["bytes"] for kind in output["kinds"].values()) == output["bytes"]


def test_what_a_killed_process_left_belongs_to_its_entry(cache):
    digest = "ab" * 32
    kept(cache, f"files/ab/{digest}.01234567.part")
    kept(cache, f"files/ab/{digest}.01234567.part.hub/deep/down/file")
    kept(cache, f"files/ab/.{digest}.ok.99.tmp")
    (entry,) = list_entries()
    assert (entry.name, entry.bytes) == (digest, 30)
    assert clear_cache(everything=True).bytes == 30
    assert not [path for path in (cache / "files").rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_opening_a_table_makes_it_the_last_used(cache):
    old, new = stored(cache, "sources/a.arrow", days=9), stored(cache, "sources/b.arrow", days=1)
    assert [entry["name"] for entry in list_contents()["entries"]] == ["a.arrow", "b.arrow"]
    load_or_build_table(old, lambda: pytest.fail("built again"))
    assert [entry["name"] for entry in list_contents()["entries"]] == ["b.arrow", "a.arrow"]
    assert new.exists()


def test_an_empty_or_absent_cache_is_no_error(cache):
    assert list_contents()["bytes"] == 0
    assert verify_cache() == []
    assert clear_cache(everything=True).removed == []


@pytest.mark.parametrize("damage", ["flip with the same stamp", "cut", "gone", "marker"])
def test_verify_names_what_changed_and_doing_as_it_says_mends_it(cache, damage):
    path, sound = stored(cache, "sources/a.arrow"), stored(cache, "splits/b.arrow")
    marker = path.with_name("a.arrow.ok")
    state, content = path.stat(), bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "marker":
        marker.write_text("{}")
    elif damage == "cut":
        path.write_bytes(content[:100])
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    result = {verdict.path: verdict for verdict in verify_cache()}
    assert result[str(sound)].state == "intact"
    expected = {"gone": "missing", "marker": "unreadable"}.get(damage, "changed")
    assert (result[str(path)].state, result[str(path)].holds) == (expected, False)
    assert result[str(path)].advice.startswith(f"remove {marker}: ")
    marker.unlink()
    assert load_or_build_table(path, lambda: pa.table({"x": list(range(100))})).num_rows == 100
    assert all(verdict.holds for verdict in verify_cache())


def test_verify_is_no_use_of_an_entry(full):
    before = list_contents()
    verify_cache()
    assert list_contents() == before


def test_verify_passes_over_what_is_being_written(cache):
    path = stored(cache, "sources/a.arrow")
    with hold_lock(path):
        assert [verdict.state for verdict in verify_cache()] == ["busy"]


def test_clear_takes_the_kinds_and_ages_that_were_named(full):
    assert [entry.kind for entry in clear_cache(older_than=45).removed] == ["files", "trees", "sources"]
    assert [entry.kind for entry in clear_cache(["images", "splits"], older_than=35).removed] == ["splits"]
    assert left(full) == ["images", "features", "tokens", "responses"]
    assert [entry.kind for entry in clear_cache(["images"]).removed] == ["images"]


def test_responses_go_only_by_name_or_with_everything(full):
    clear_cache(older_than=0)
    assert left(full) == ["responses"]
    assert [entry.kind for entry in clear_cache(["responses"]).removed] == ["responses"]


def test_everything_leaves_nothing_but_locks(full):
    size = list_contents()["bytes"]
    assert clear_cache(everything=True).bytes == size
    assert {path.suffix for path in full.rglob("*") if path.is_file()} <= {".lock"}


def test_a_dry_run_tells_the_same_and_removes_nothing(full):
    before = list_contents()
    output = clear_cache(everything=True, dry_run=True)
    assert list_contents() == before
    done = clear_cache(everything=True)
    assert [entry.path for entry in done.removed] == [entry.path for entry in output.removed]


def test_links_and_the_user_s_own_files_are_passed_over(cache, tmp_path):
    outside = tmp_path / "outside"
    (outside / "ab").mkdir(parents=True)
    digest = "ab" * 32
    precious = [kept(outside, "a.arrow"), kept(outside, f"ab/{digest}"), kept(outside, f"{digest}.json")]
    own = [
        kept(cache, "sources/notes.txt"),
        kept(cache, "mine/a.arrow"),
        kept(cache, "a.arrow"),
        kept(cache, "features/b/c"),
    ]
    links = {
        "files": outside,
        "sources/linked.arrow": outside / "a.arrow",
        "features/linked-0123456789abcdef": outside,
        "responses/ab": outside,
    }
    for position, target in links.items():
        (cache / position).parent.mkdir(parents=True, exist_ok=True)
        (cache / position).symlink_to(target)
    inside = stored(cache, "features/made-0123456789abcdef/train.arrow").parent
    (inside / "linked").symlink_to(outside)
    assert [entry.path for entry in clear_cache(everything=True).removed] == [inside]
    assert all(path.exists() for path in (*precious, *own))
    assert all((cache / position).is_symlink() for position in links)


def test_what_another_process_writes_is_left_with_the_reason(cache):
    path = stored(cache, "sources/a.arrow", days=9)
    with hold_lock(path):
        ((_, why),) = clear_cache(everything=True).left
        assert why == "another process works on it"
    (entry,) = clear_cache(everything=True).removed
    assert entry.path == path


def test_a_table_that_is_removed_before_it_is_opened_is_built_again(cache):
    path, built = cache / "sources" / "a.arrow", []

    def write(target: Path) -> None:
        built.append(target)
        target.write_bytes(b"rows")

    def read(stored_path: Path) -> bytes:
        if len(built) == 1:
            clear_cache(everything=True)
        return stored_path.read_bytes()

    assert load_or_write(path, write, read) == b"rows"
    assert len(built) == 2


def test_what_to_clear_must_be_said_in_words_that_exist(cache):
    with pytest.raises(FarshiftError, match="give what to clear: --kind KIND, --older-than DAYS, or --all"):
        clear_cache()
    with pytest.raises(UnknownName, match="no kind of cache entry named 'file': did you mean files"):
        clear_cache(["file"])
    with pytest.raises(FarshiftError, match="--all clears everything: omit"):
        clear_cache(["files"], everything=True)
    with pytest.raises(FarshiftError, match="-1 days is negative"):
        clear_cache(older_than=-1)


def names() -> list[str]:
    return [entry.name.removesuffix(".arrow") for entry in list_entries(*REMADE)]


def size() -> int:
    return sum(entry.bytes for entry in list_entries(*REMADE))


def test_the_least_recently_used_goes_until_the_rest_fits(cache, monkeypatch):
    for name, days in (("a", 3), ("b", 9), ("c", 1), ("d", 5)):
        stored(cache, f"sources/{name}.arrow", 1000, days)
    item = size() // 4
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", str(3 * item + item // 2))
    stored(cache, "sources/e.arrow", 1000)
    assert names() == ["a", "c", "e"]


def test_without_a_write_nothing_goes(cache, monkeypatch):
    for name in "abc":
        stored(cache, f"sources/{name}.arrow", 1000)
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    stored(cache, "sources/b.arrow", 1000)
    assert names() == ["a", "b", "c"]


def test_a_table_larger_than_the_limit_is_read_and_not_kept(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    path = cache / "sources" / "a.arrow"
    for _ in range(2):
        assert load_or_build_table(path, lambda: pa.table({"x": list(range(9000))})).num_rows == 9000
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
    stored(cache, "sources/a.arrow", 1000)
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
    stored(cache, "sources/last.arrow", 1000)
    assert 0 < size() <= 60_000
    assert all(is_intact(entry.path) for entry in list_entries(*REMADE) if entry.markers())
