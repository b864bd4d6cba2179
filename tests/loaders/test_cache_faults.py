"""What a disk or a copy does to the cache: no wrong byte is read, and what is right is read wherever it lies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import farshift as fs
import numpy as np
import pyarrow as pa
import pytest
from farshift import FarshiftError
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.core.files import compute_file_sha256
from farshift.core.progress import report_to
from farshift.loaders.acquire.fetch import fetch_file
from farshift.loaders.cache import store
from farshift.loaders.cache.entries import verify_cache
from farshift.loaders.cache.store import is_intact, load_or_build_table, use_verify_mode
from farshift.splits.manifest import FilePin
from support import Heard

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


def hundred() -> pa.Table:
    return pa.table({"x": list(range(100))})


@pytest.fixture
def table(cache):
    path = cache / "sources" / "a.arrow"
    load_or_build_table(path, hundred)
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


def test_a_way_that_is_none_is_refused(monkeypatch):
    with pytest.raises(FarshiftError, match="verify: invalid mode 'sometimes': choose from always, open, never"):
        fs.load(ON, verify="sometimes")
    monkeypatch.setenv("FARSHIFT_VERIFY", "yes")
    with pytest.raises(FarshiftError, match="FARSHIFT_VERIFY: invalid mode 'yes'"):
        fs.load(ON)


def test_a_damaged_marker_costs_a_rebuild_and_no_more(table):
    marker = table.with_name("a.arrow.ok")
    marker.write_bytes(marker.read_bytes()[:-9])
    heard = Heard()
    with report_to(heard):
        assert load_or_build_table(table, hundred).equals(hundred())
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
