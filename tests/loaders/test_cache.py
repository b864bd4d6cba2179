"""The cache: listed, verified, cleared and kept within its limit; and no damaged file, half a file or link is ever read."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import farshift as fs
import numpy as np
import pyarrow as pa
import pytest
from farshift import FarshiftError, load
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.core.errors import UnknownName
from farshift.core.files import compute_file_sha256, hold_lock, write_atomically
from farshift.core.progress import report_to
from farshift.loaders.acquire.fetch import fetch_file
from farshift.loaders.acquire.piecewise import ColumnFiles
from farshift.loaders.acquire.source import find_source
from farshift.loaders.cache import store
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
from farshift.loaders.cache.store import is_intact, load_or_build_table, load_or_write, use_verify_mode, write_marker
from farshift.splits.manifest import FilePin
from farshift.splits.schema import Field, Schema
from hypothesis import given
from hypothesis import strategies as st
from support import Heard


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
    ages = {
        f"files/ab/{'ab' * 32}": 60,
        f"trees/{'ef' * 20}": 55,
        "sources/made-v1-0123-45.arrow": 50,
        "splits/made-split-0123-45.arrow": 40,
        f"images/{'ab' * 32}.npy": 25,
        "features/resnet-50-0123456789abcdef/0123.arrow": 22,
        "tokens/bert-0123456789abcdef.arrow": 21,
    }
    for place, days in ages.items():
        write_marker(kept(cache, place), "f" * 64)
        aged(cache / f"{place}.ok", days)
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


def test_verify_passes_over_what_is_being_written(cache):
    path = stored(cache, "sources/a.arrow")
    with hold_lock(path):
        assert [verdict.state for verdict in verify_cache()] == ["busy"]


def test_clear_takes_the_kinds_and_ages_that_were_named(full):
    assert [entry.kind for entry in clear_cache(older_than=45).removed] == ["files", "trees", "sources"]
    assert [entry.kind for entry in clear_cache(["images", "splits"], older_than=35).removed] == ["splits"]
    assert left(full) == ["images", "features", "tokens", "responses"]
    assert [entry.kind for entry in clear_cache(["images"]).removed] == ["images"]
    clear_cache(older_than=0)
    assert left(full) == ["responses"], "which go only by their name, or with everything"
    assert [entry.kind for entry in clear_cache(["responses"]).removed] == ["responses"]


def test_a_dry_run_tells_what_everything_is_and_everything_leaves_nothing_but_locks(full):
    before = list_contents()
    verify_cache()
    told = clear_cache(everything=True, dry_run=True)
    assert list_contents() == before, "nor does it count as a use"
    done = clear_cache(everything=True)
    assert [entry.path for entry in done.removed] == [entry.path for entry in told.removed]
    assert done.bytes == before["bytes"]
    assert {path.suffix for path in full.rglob("*") if path.is_file()} <= {".lock"}
    assert (list_contents()["bytes"], verify_cache(), clear_cache(everything=True).removed) == (0, [], [])


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
    for name, days in (("a", 7), ("b", 9), ("c", 1), ("d", 5)):
        stored(cache, f"sources/{name}.arrow", 1000, days)
    item = size() // 4
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", str(3 * item + item // 2))
    load_or_build_table(cache / "sources/a.arrow", lambda: pytest.fail("built again"))
    assert names() == ["a", "b", "c", "d"], "without a write nothing goes"
    response = kept(cache, f"responses/ab/{'ab' * 32}.json", days=99)
    response.write_bytes(b"x" * 50_000)
    stored(cache, "sources/e.arrow", 1000)
    assert names() == ["a", "c", "e"], "who was opened last stays"
    assert response.exists(), "and is not counted"


def test_a_whole_load_works_under_any_limit(cache, monkeypatch):
    expected = load("modadd97/xi35").arrow()
    for limit in ("1", "200kB", "1GB"):
        monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", limit)
        clear_cache(everything=True)
        assert load("modadd97/xi35").arrow().equals(expected)
        assert size() <= parse_size(limit, "")


SIZES = {"10GB": 10**10, "500 mb": 5 * 10**8, "1.5GiB": 3 * 2**29, "4096": 4096, "2k": 2000, " 1TB ": 10**12}
NO_SIZES = ("", "GB", "-1GB", "1e9", "ten", "10XB", "0", "0.1B", "1GBs", "1 G B", "nan")


def test_sizes_are_read_as_people_write_them_and_a_limit_that_is_none_is_refused_before_any_work(cache, monkeypatch):
    assert {text: parse_size(text, "limit") for text in SIZES} == SIZES
    for text in NO_SIZES:
        with pytest.raises(FarshiftError, match="limit: "):
            parse_size(text, "limit")
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", " ")
    assert read_cache_limit() is None
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "10 apples")
    with pytest.raises(FarshiftError, match="FARSHIFT_CACHE_LIMIT: '10 apples' is not a size: write for example 10GB"):
        load_or_build_table(cache / "sources" / "a.arrow", lambda: pytest.fail("built"))


@given(st.integers(1, 10**14))
def test_a_size_in_words_is_read_back_to_within_its_digits(number):
    back = parse_size(format_size(number).replace("bytes", "B"), "size")
    assert abs(back - number) <= 0.05 * number


SLOW = """
import sys, time, pyarrow as pa
from pathlib import Path
from farshift.loaders.cache.store import load_or_build_table
def build():
    open(sys.argv[2], "a").write("built\\n")
    time.sleep(0.5)
    return pa.table({"x": list(range(1000))})
print(load_or_build_table(Path(sys.argv[1]), build).num_rows)
"""


def test_processes_that_want_the_same_table_build_it_once(tmp_path):
    command = [sys.executable, "-c", SLOW, str(tmp_path / "t.arrow"), str(tmp_path / "log")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert {child.communicate(timeout=180)[0].strip() for child in children} == {"1000"}
    assert (tmp_path / "log").read_text() == "built\n"


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


ON = "modadd97/xi35"


@pytest.fixture(autouse=True)
def _a_new_process(monkeypatch):
    """Has compared nothing yet."""
    monkeypatch.setattr(store, "_compared", {})
    monkeypatch.delenv("FARSHIFT_VERIFY", raising=False)


def flip(path: Path, place: float = 0.5) -> None:
    """Flip a bit as a disk does: size, times and inode stay."""
    state = path.stat()
    with path.open("rb+") as file:
        file.seek(int(state.st_size * place))
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def make_hundred() -> pa.Table:
    return pa.table({"x": list(range(100))})


@pytest.fixture
def table(cache):
    path = cache / "sources" / "a.arrow"
    load_or_build_table(path, make_hundred)
    store._compared.clear()
    return path


@pytest.mark.attack("disk", "a flipped bit in any file of the cache")
def test_no_flipped_bit_of_any_cached_file_reaches_a_model_or_a_score(cache, monkeypatch):
    """The attack: a byte changed under an equal size and time, in each file that a benchmark leaves in the cache."""
    model_inputs, truth = load_model_inputs(fs.benchmark(ON)), fs.benchmark(ON).view("ood")[1]
    rows = {name: model_inputs.part(name).batch(slice(None)) for name in fs.benchmark(ON).predicted_parts}
    files = sorted(path.with_suffix("") for path in cache.rglob("*.ok"))
    assert {path.parent.name for path in files} == {"sources", "splits"}
    for path in files:
        right = path.read_bytes()
        flip(path)
        assert path.read_bytes() != right
        store._compared.clear()
        heard = Heard()
        with report_to(heard):
            again = load_model_inputs(fs.benchmark(ON))
            assert np.array_equal(fs.benchmark(ON).view("ood")[1], truth)
        for name, expected in rows.items():
            result = again.part(name).batch(slice(None))
            assert all(np.array_equal(expected[column], result[column]) for column in expected)
        assert path.read_bytes() == right
        (line,) = heard.lines
        assert str(path) in line
        assert "is truncated or modified" in line


@pytest.mark.attack("disk", "a flipped bit in any file of the cache")
@pytest.mark.parametrize("place", [0.0, 0.3, 0.999999])
def test_a_flipped_bit_anywhere_is_found_when_a_process_first_opens_the_file_and_by_verify(table, place):
    assert [item.state for item in verify_cache()] == ["intact"]
    flip(table, place)
    assert not is_intact(table)
    assert [item.state for item in verify_cache()] == ["changed"]


@pytest.mark.attack("disk", "a file of the cache that was cut off")
def test_a_file_that_was_cut_off_is_found_by_its_size_without_reading_it(table, monkeypatch):
    monkeypatch.setattr(store, "compute_file_sha256", lambda path: pytest.fail("read"))
    monkeypatch.setenv("FARSHIFT_VERIFY", "never")
    os.truncate(table, table.stat().st_size - 1)
    assert not is_intact(table)


def test_a_file_is_compared_once_in_a_process_or_always_or_never(table, monkeypatch):
    requested = []
    monkeypatch.setattr(store, "compute_file_sha256", lambda path: requested.append(path) or compute_file_sha256(path))
    assert is_intact(table)
    assert is_intact(table)
    assert len(requested) == 1
    monkeypatch.setenv("FARSHIFT_VERIFY", "always")
    assert is_intact(table)
    assert len(requested) == 2
    flip(table)
    with use_verify_mode("never"):
        assert is_intact(table), "what its marker says of size, time and inode is believed"
    assert not is_intact(table)
    monkeypatch.setenv("FARSHIFT_VERIFY", "never")
    table.touch()
    assert not is_intact(table), "another time: nobody vouches for it"
    with pytest.raises(FarshiftError, match="verify: invalid mode 'sometimes': choose from always, open, never"):
        fs.load(ON, verify="sometimes")
    monkeypatch.setenv("FARSHIFT_VERIFY", "yes")
    with pytest.raises(FarshiftError, match="FARSHIFT_VERIFY: invalid mode 'yes'"):
        fs.load(ON)


def test_a_large_file_is_compared_once_a_day_whatever_process_asks(table, monkeypatch):
    monkeypatch.setattr(store, "LARGE", 10)
    marker = table.with_name("a.arrow.ok")
    assert is_intact(table)
    store._compared.clear()
    table.touch()
    assert is_intact(table), "another time: compared, and noted"
    output = json.loads(marker.read_text())
    assert output["compared"] > 0
    flip(table)
    store._compared.clear()
    assert is_intact(table)
    with use_verify_mode("always"):
        assert not is_intact(table)
    marker.write_text(json.dumps(output | {"compared": output["compared"] - 86_401}))
    assert not is_intact(table)


def test_a_damaged_marker_costs_a_rebuild_and_no_more(table):
    marker = table.with_name("a.arrow.ok")
    marker.write_bytes(marker.read_bytes()[:-9])
    heard = Heard()
    with report_to(heard):
        assert load_or_build_table(table, make_hundred).equals(make_hundred())
    assert heard.lines == [f"{table} is truncated or modified: building it again"]


@pytest.mark.attack("disk", "downloaded files that changed")
def test_a_downloaded_file_that_changed_is_fetched_again_and_one_whose_marker_is_lost_is_kept(cache, tmp_path):
    (tmp_path / "own").mkdir()
    own = tmp_path / "own" / "rows.csv"
    own.write_bytes(b"1,2\n" * 100)
    pin = FilePin(name="rows.csv", sha256=compute_file_sha256(own), bytes=400, mirrors=[])
    path = fetch_file(pin, (own.parent,))
    flip(path)
    store._compared.clear()
    heard = Heard()
    with report_to(heard):
        assert fetch_file(pin, (own.parent,)).read_bytes() == own.read_bytes()
    assert heard.lines == [f"{path} (rows.csv) is truncated or modified: fetching it again"]
    path.with_name(f"{path.name}.ok").unlink()
    own.unlink()
    assert fetch_file(pin) == path


READ = """
import sys
import farshift as fs

def add(batch):
    return (batch["a"] + batch["b"]) % 97

run = fs.evaluate(add, on="modadd97/xi35", seeds=1, budget="quick", out=sys.argv[1])
print(fs.score(run).ood.value, len(fs.load("modadd97/xi35")))
try:
    fs.load("prefix_sums/32_to_64")
except fs.FarshiftError as error:
    print(error)
"""


def unwritable(folder: Path) -> list[str]:
    """What a command begins with to which a folder may only be read: a mount for root, whom no mode holds back."""
    if os.geteuid():
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode & ~0o222)
        return []
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    begin = ["unshare", "--mount", "sh", "-c", script, str(folder)]
    if not shutil.which("unshare") or subprocess.run([*begin, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount")
    return begin


@pytest.mark.parametrize(
    ("folder", "advice"), [("cache", "set FARSHIFT_CACHE"), ("home", "set FARSHIFT_HOME"), ("out", "")]
)
def test_a_file_that_cannot_be_written_is_told_with_the_setting_of_its_folder(tmp_path, monkeypatch, folder, advice):
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    (tmp_path / folder).write_text("no folder")
    with pytest.raises(FarshiftError, match=advice or "choose a folder on another disk") as refused:
        write_atomically(tmp_path / folder / "x.csv", b"")
    assert ("FARSHIFT" in str(refused.value)) == bool(advice)


@pytest.mark.attack("disk", "a copied cache, and a read-only one")
def test_a_copied_cache_that_may_only_be_read_is_read_and_what_it_lacks_is_one_line(tmp_path, monkeypatch):
    """Other times, other inodes, another path: nothing is built, nothing is written."""
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "made"))
    load_model_inputs(fs.benchmark(ON))
    copy = tmp_path / "copied"
    shutil.copytree(tmp_path / "made", copy, copy_function=shutil.copyfile)
    shutil.rmtree(tmp_path / "made")
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    begin = unwritable(copy)
    environment = os.environ | {"FARSHIFT_CACHE": str(copy)}
    command = [*begin, sys.executable, "-c", READ, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "building it again" not in done.stderr
    read, refused = done.stdout.splitlines()
    assert read == "1.0 4704"
    assert "cannot be written" in refused
    assert "set FARSHIFT_CACHE" in refused
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
