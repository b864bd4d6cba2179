"""Bringing files: from anywhere, only ever the pinned bytes, through every fault a network has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from farshift import FarshiftError
from farshift.core.canonical import compute_identity
from farshift.core.errors import BadDefinition, Unavailable, UnknownName
from farshift.core.progress import report_to
from farshift.loaders.acquire.fetch import FilePin, fetch_file, fetch_unpinned_file
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.source import DownloadSize, compute_download_size, find_source
from farshift.loaders.acquire.trees import fetch_tree
from farshift.splits.manifest import TreePin, UnpinnedFile
from hub_server import REPOSITORY, serving
from own_source import pin_source
from servers import web
from support import Heard

BODY = bytes(range(256)) * 4096  # 1 MiB


def pin(*mirrors: dict[str, str], body: bytes = BODY, name: str = "data.bin") -> FilePin:
    return FilePin(name=name, sha256=sha256(body).hexdigest(), bytes=len(body), mirrors=list(mirrors))


def https(site, path: str = "/data.bin") -> dict[str, str]:
    return {"sort": "https", "url": site.url + path}


def test_a_file_is_downloaded_once_and_then_comes_from_the_cache(cache):
    heard = Heard()
    with web(**{"data.bin": BODY}) as site, report_to(heard):
        first = fetch_file(pin(https(site)))
        assert first.read_bytes() == BODY
        assert fetch_file(pin(https(site))) == first
        assert len(site.requests) == 1
    assert heard.done[-1] == len(BODY), "progress was told"


def partial_file(cache: Path, wanted: FilePin) -> Path:
    """Where the download from the first mirror grows."""
    folder = cache / "files" / wanted.sha256[:2]
    return folder / f"{wanted.sha256}.{compute_identity(wanted.mirrors[0])[:8]}.part"


def leave(cache: Path, wanted: FilePin, content: bytes) -> None:
    path = partial_file(cache, wanted)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def test_a_damaged_left_over_is_begun_again_and_blames_nobody(cache):
    with web(**{"data.bin": BODY}) as site:
        expected = pin(https(site))
        leave(cache, expected, b"x" * 5000)
        assert fetch_file(expected).read_bytes() == BODY


def test_what_one_mirror_gave_is_never_continued_with_anothers_bytes(cache):
    with web(**{"data.bin": BODY[::-1], "good.bin": BODY}) as site:
        site.faults["/data.bin"] = ["cut", "500", "500", "500"]
        assert fetch_file(pin(https(site), https(site, "/good.bin"))).read_bytes() == BODY


def test_a_full_disk_during_a_download_is_said_as_such(cache, monkeypatch):
    import errno

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("farshift.loaders.mirrors.https.report_progress", full)
    with web(**{"data.bin": BODY}) as site:
        with pytest.raises(FarshiftError, match="no space left for .*FARSHIFT_CACHE"):
            fetch_file(pin(https(site)))
        assert len(site.requests) == 1, "not tried again"
        monkeypatch.undo()
        monkeypatch.setenv("FARSHIFT_CACHE", str(cache))
        assert fetch_file(pin(https(site))).read_bytes() == BODY


@pytest.mark.attack("host", "a mirror that gives other bytes")
def test_a_file_with_a_wrong_digest_is_named_removed_and_the_next_mirror_tried(cache):
    heard = Heard()
    with web(**{"data.bin": BODY, "good.bin": BODY}) as site, report_to(heard):
        site.faults["/data.bin"] = ["other"]
        got = fetch_file(pin(https(site), https(site, "/good.bin")))
        assert got.read_bytes() == BODY
    assert [path for path in (cache / "files").rglob("*.part")] == []
    assert any("another file" in line and "the pinned data.bin" in line for line in heard.lines)


def test_a_mirror_that_is_down_is_told_without_a_second_try(cache, monkeypatch):
    monkeypatch.setattr(time, "sleep", pytest.fail)
    with pytest.raises(Unavailable, match="refused"):
        fetch_file(pin({"sort": "https", "url": "http://127.0.0.1:9/x"}))


def test_offline_asks_no_network_and_says_so(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    with web(**{"data.bin": BODY}) as site:
        with pytest.raises(Unavailable, match=r"not tried \(offline\)"):
            fetch_file(pin(https(site)))
        assert not site.requests


def test_a_users_own_copy_is_found_by_content_whatever_its_name(cache, tmp_path, monkeypatch):
    own = tmp_path / "own" / "deep"
    own.mkdir(parents=True)
    (own / "renamed.dat").write_bytes(BODY)
    (own / "data.bin").write_bytes(BODY[::-1])
    heard = Heard()
    with report_to(heard):
        assert fetch_file(pin(), (tmp_path / "own",)).read_bytes() == BODY
    assert any("data.bin is not the pinned" in line for line in heard.lines)
    assert (own / "data.bin").read_bytes() == BODY[::-1], "the user's file is left as it is"
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(tmp_path / "own"))
    assert fetch_file(pin()).read_bytes() == BODY
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(tmp_path / "absent"))
    with pytest.raises(FarshiftError, match="absent is not a folder"):
        fetch_file(pin(body=b"x"))


def wheel(folder: Path, content: bytes) -> None:
    """A wheel that holds a data file, as a package index would serve it."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "farshift_test_data-1.0-py3-none-any.whl", "w") as bundle:
        bundle.writestr("farshift_test_data/data.bin", content)
        info = "farshift_test_data-1.0.dist-info"
        bundle.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: farshift-test-data\nVersion: 1.0\n")
        bundle.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        bundle.writestr(f"{info}/RECORD", "")


PYPI = {"sort": "pypi", "package": "farshift-test-data", "version": "1.0", "member": "farshift_test_data/data.bin"}


def test_a_file_inside_a_package_comes_through_the_users_own_pip(cache, tmp_path, monkeypatch):
    wheel(tmp_path / "links", BODY)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    assert fetch_file(pin(PYPI)).read_bytes() == BODY
    with pytest.raises(Unavailable, match="has no readable absent.csv"):
        fetch_file(pin(PYPI | {"member": "absent.csv"}, body=b"other"))
    with pytest.raises(Unavailable, match="No matching distribution"):
        fetch_file(pin(PYPI | {"version": "2.0"}, body=b"other"))


def fetch_through_hub_client(pins: list[FilePin], endpoint: str, home: Path) -> tuple[list[str], str]:
    """What is fetched, or refused, for each pin, and what is logged. The client reads HF_ENDPOINT when it is imported,
    so it gets a process of its own."""
    code = (
        "import sys; from farshift.loaders.acquire.fetch import FilePin, fetch_file\n"
        "for pin in sys.argv[1:]:\n"
        "    try: print(fetch_file(FilePin.model_validate_json(pin)))\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
    )
    settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
    command = [sys.executable, "-c", code, *(item.model_dump_json() for item in pins)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | settings, timeout=120, check=True)
    return done.stdout.strip().splitlines(), done.stderr


def test_a_file_of_a_model_on_the_hub_comes_through_the_real_client(cache, tmp_path):
    with serving() as hub:
        there = {"sort": "hub", "repo": REPOSITORY, "revision": hub.commit({"data.bin": BODY}), "file": "data.bin"}
        (path,), _ = fetch_through_hub_client([pin(there | {"type": "model"})], hub.url, tmp_path / "hf")
        assert Path(path).read_bytes() == BODY
        assert any(request.path.startswith(f"/{REPOSITORY}/resolve/") for request in hub.requests)


def test_without_a_network_a_file_of_a_hub_is_refused_in_one_line(cache, tmp_path):
    there = {"sort": "hub", "repo": REPOSITORY, "revision": "main", "file": "data.bin"}
    pins = [pin(there), pin(there | {"file": "*.bin"})]
    refused, logged = fetch_through_hub_client(pins, "http://127.0.0.1:9", tmp_path / "hf")
    assert [line.split(":")[0] for line in refused] == ["Unavailable data.bin is not available"] * 2
    assert all("Connection refused" in line for line in refused)
    assert logged == "", "the client repeats nothing"


def test_a_mirror_of_an_unknown_sort_or_without_its_keys_is_a_bad_definition(cache):
    with pytest.raises(UnknownName, match="did you mean https"):
        fetch_file(pin({"sort": "http"}))
    mirrors = [{"sort": "https"}]
    with pytest.raises(BadDefinition, match="lacks 'url'"):
        fetch_file(pin(*mirrors))
    with pytest.raises(BadDefinition, match="lacks 'url'"):
        fetch_unpinned_file(UnpinnedFile(name="data.bin", mirrors=mirrors))
    with pytest.raises(BadDefinition, match="lacks 'url'"):
        fetch_tree(TreePin(name="data", mirrors=mirrors))


def test_an_empty_file_is_had_without_a_word(cache):
    with web(**{"data.bin": b""}) as site:
        assert fetch_file(pin(https(site), body=b"")).read_bytes() == b""


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_kill_in_the_middle_of_a_pull_loses_nothing(cache, stop):
    """kill -9 or Ctrl-C while the bytes trickle in; the next call goes on from what is there."""
    code = "import sys; from farshift.loaders.acquire.fetch import *; print(fetch_file(FilePin.model_validate_json(sys.argv[1])))"
    big = BODY * 64
    with web(**{"data.bin": big}) as site:
        site.faults["/data.bin"] = ["slow"]
        expected = pin(https(site), body=big)
        child = subprocess.Popen([sys.executable, "-c", code, expected.model_dump_json()], stdout=subprocess.PIPE)
        partial = partial_file(cache, expected)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (partial.exists() and partial.stat().st_size > 0):
            time.sleep(0.001)
        child.send_signal(stop)
        child.wait()
        assert 0 < partial.stat().st_size < len(big), "stopped in the middle"
        assert fetch_file(expected).read_bytes() == big
        assert site.requests[-1][1] is not None, "went on from the byte where it stopped"


def test_two_processes_pulling_the_same_file_download_it_once(cache):
    code = "import sys; from farshift.loaders.acquire.fetch import *; print(fetch_file(FilePin.model_validate_json(sys.argv[1])))"
    with web(**{"data.bin": BODY * 32}) as site:
        expected = pin(https(site), body=BODY * 32)
        command = [sys.executable, "-c", code, expected.model_dump_json()]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        paths = {child.communicate(timeout=180)[0].strip() for child in children}
        assert len(paths) == 1
        assert Path(paths.pop()).read_bytes() == BODY * 32
        assert len(site.requests) == 1


def test_files_with_an_address_are_downloads_and_one_s_own_are_none(cache, tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{row},{row % 2}\n" for row in range(20)))
    pin_source(Data(files=["rows.csv"], inputs=["x"], labels=["y"]), "mine", tmp_path, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(tmp_path))
        patch.setenv("FARSHIFT_CACHE", str(tmp_path / "empty"))
        assert compute_download_size("mine") == DownloadSize()
    pins = find_source("wine_quality").definition.distributions[0].files
    assert compute_download_size("wine_quality") == DownloadSize(sum(pin.bytes for pin in pins))
    assert "a folder of" in compute_download_size("spoken_digits").unknown[0]
