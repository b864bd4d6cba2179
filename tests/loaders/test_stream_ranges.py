"""Only the bytes that hold wanted rows are asked for; what breaks on the way goes on where it broke, or is one error."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError, stream
from farshift.core.errors import BadData, Unavailable
from farshift.loaders.split import open_split
from farshift.loaders.stream import files as remote_files
from farshift.loaders.stream.files import HttpFile, coalesce_ranges
from hypothesis import given
from hypothesis import strategies as st
from servers import Site, serve_folder

NAME = "prefix_sums/32_to_64"
BODY = np.random.default_rng(0).bytes(100_000)


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    part = open_split(NAME).part("train")
    part.to_webdataset(folder / "shards")
    pq.write_table(part.source.select(["bits", "sums", "length"]), folder / "rows.parquet", row_group_size=500)
    return folder


def ids(batches) -> list[int]:
    return [row for batch in batches for row in batch["row_id"].tolist()]


places = st.tuples(st.integers(0, 2), st.integers(0, 10**6), st.integers(1, 10**4))


@given(st.lists(places, max_size=60))
def test_every_row_lies_in_one_range_and_ranges_hold_no_more_than_gaps_allow(rows):
    files, offsets, lengths = (np.array([row[position] for row in rows], np.int64) for position in range(3))
    result = list(coalesce_ranges(files, offsets, lengths))
    assert sorted(row for piece in result for row in piece.rows.tolist()) == list(range(len(rows)))
    for piece in result:
        own = [rows[row] for row in piece.rows]
        assert {row[0] for row in own} == {piece.file}
        assert piece.start == min(row[1] for row in own)
        assert piece.stop == max(row[1] + row[2] for row in own)
        covered = sum(row[2] for row in own) + remote_files.GAP * (len(own) - 1)
        assert piece.stop - piece.start <= min(covered, max(remote_files.LONGEST, max(row[2] for row in own)))


def test_a_hundredth_of_the_rows_costs_a_hundredth_of_the_bytes(exports, monkeypatch):
    monkeypatch.setattr(remote_files, "GAP", 2_000)
    monkeypatch.setattr(remote_files, "SHARE", 0)  # a cache has blocks that are larger than these rows
    with serve_folder(exports / "shards") as site:
        part = stream(NAME, "train", site.url)
        assert site.bytes_asked(".tar") == 0, "opening reads the index alone"
        some = part.select(np.arange(0, len(part), 100))
        assert sorted(ids(some.batches(20, seed=0))) == some.row_ids.tolist()
        size = sum(len(body) for name, body in site.files.items() if name.endswith(".tar"))
        assert len([path for path, *_ in site.asked if path.endswith(".tar")]) <= 100
        assert site.bytes_asked(".tar") < size / 50
        site.asked.clear()
        list(part.batches(1000))
        assert site.bytes_asked(".tar") < 1.01 * size
        assert len(site.asked) <= 20, "neighbours are read together"


def test_parquet_is_read_through_once_and_then_by_row_group(exports, tmp_path, monkeypatch):
    monkeypatch.setattr(remote_files, "SHARE", 0)
    (tmp_path / "pq").mkdir()
    shutil.copy(exports / "rows.parquet", tmp_path / "pq")
    with serve_folder(tmp_path / "pq") as site:
        size, url = len(site.files["/rows.parquet"]), f"{site.url}/rows.parquet"
        part = stream(NAME, "train", url)
        assert site.bytes_asked() > 0.9 * size
        site.asked.clear()
        part = stream(NAME, "train", url)
        assert site.bytes_asked() <= http_footer(size), "where the rows are is known from the first time"
        site.asked.clear()
        few = part.select(np.argsort(part.store.number)[:300])
        assert sorted(ids(few.batches(50, seed=1))) == sorted(few.row_ids.tolist())
        assert site.bytes_asked() < size / 5, "their row groups alone"


def http_footer(size: int) -> int:
    """The byte that opens a file, and the end of it that holds the footer."""
    return 1 + min(size, 1 << 16)


def test_a_file_that_changed_is_read_through_anew(exports, tmp_path):
    folder = tmp_path / "pq"
    folder.mkdir()
    target = shutil.copy(exports / "rows.parquet", folder)
    part = stream(NAME, "train", folder)
    pq.write_table(pq.read_table(target).slice(0, 9_999), target)
    with pytest.raises(BadData, match="changed since it was opened: open the stream again"):
        list(part.batches(100))
    with pytest.raises(BadData, match=r"lacks [\d,]+ of 10,000 rows of prefix_sums/32_to_64@1, train"):
        stream(NAME, "train", folder)


def read(site: Site, start: int = 0, stop: int = len(BODY)) -> bytes:
    return HttpFile.open(f"{site.url}/file").read(start, stop, threading.Event())


@pytest.fixture
def site(tmp_path):
    (tmp_path / "file").write_bytes(BODY)
    with serve_folder(tmp_path) as result:
        yield result


@pytest.mark.parametrize(
    ("fault", "message"), [("grown", "changed since it was opened"), ("416", "shorter than expected")]
)
def test_another_length_of_the_file_is_one_error(site, fault, message):
    site.faults["/file"] = ["", fault]
    with pytest.raises(BadData, match=message) as caught:
        read(site, 10, 20_000)
    assert "\n" not in str(caught.value)


def test_files_without_a_tag_are_read_through_at_every_opening(exports, tmp_path):
    (tmp_path / "pq").mkdir()
    shutil.copy(exports / "rows.parquet", tmp_path / "pq")
    with serve_folder(tmp_path / "pq") as site:
        site.tags = False
        for _ in range(2):
            site.asked.clear()
            stream(NAME, "train", f"{site.url}/rows.parquet")
            assert site.bytes_asked() > 0.9 * len(site.files["/rows.parquet"])


def test_a_redirect_is_followed_once_and_asked_again_when_it_ends(site):
    site.moved["/first"] = "/file"
    file = HttpFile.open(f"{site.url}/first")
    requested = [file.read(at, at + 5, threading.Event()) for at in (0, 10, 20)]
    assert requested == [BODY[at : at + 5] for at in (0, 10, 20)]
    assert site.redirected == 2, "when it was opened, and for the first range"
    site.faults["/file"] = ["403"]
    assert file.read(30, 35, threading.Event()) == BODY[30:35]
    assert site.redirected == 3


def test_without_the_network_nothing_is_asked(site, monkeypatch):
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    with pytest.raises(Unavailable, match="was not requested: FARSHIFT_OFFLINE is set"):
        read(site)
    assert site.asked == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere", "nowhere cannot be read: No such file"),
        ("*.pq", r"no file \*\.pq"),
        ("notes.txt", "is not a source of rows: give a folder that to_webdataset wrote, or files that all end in"),
        (["a.parquet", "notes.txt"], "is not a source of rows"),
        ("hf://models/x", "is not an address of files: use hf://datasets/owner/name@revision/path"),
        ("a.parquet", "a.parquet is not a Parquet file"),
    ],
)
def test_what_is_no_source_is_one_line(source, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("notes.txt", "a.parquet"):
        Path(name).write_text("x" * 600)
    open_split(NAME)
    with pytest.raises(FarshiftError, match=message) as caught:
        stream(NAME, "train", source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", ["shards", "rows.parquet"])
def test_what_fits_the_memory_is_fetched_once_whatever_is_read_of_it(form, exports, tmp_path):
    """Shuffled epochs in small blocks, each of whose rows lie everywhere in the files."""
    folder = exports / form if form == "shards" else tmp_path
    if form != "shards":
        shutil.copy(exports / form, tmp_path / form)
    rows = sorted(open_split(NAME).part("train").row_ids.tolist())
    with serve_folder(folder) as site:
        ending = ".tar" if form == "shards" else ".parquet"
        size = sum(len(body) for path, body in site.files.items() if path.endswith(ending) and "index" not in path)
        there = f"{site.url}/{form}" if form != "shards" else site.url
        part = stream(NAME, "train", there, memory=size * 4 // 3 + 4)
        for epoch in range(2):
            assert sorted(ids(part.batches(64, seed=0, epoch=epoch))) == rows
        fetched = [ask for ask in site.asked if ask[0].endswith(ending) and "index" not in ask[0]]
        opening = [ask for ask in fetched if ask[1:] == (0, 0)]
        assert sum(last - first + 1 for _, first, last in fetched) - len(opening) <= 1.05 * size
        site.asked.clear()
        part = stream(NAME, "train", there, memory=size * 4 // 3 - 4)
        assert sorted(ids(part.batches(64, seed=0))) == rows
        assert site.bytes_asked(ending) > size, "what does not fit is read block by block"


def test_a_wrong_byte_is_not_kept(exports):
    with serve_folder(exports / "shards") as site:
        site.tags = False
        part = stream(NAME, "train", site.url)
        (shard,) = [path for path in site.files if path.endswith(".tar")]
        full = site.files[shard]
        site.files[shard] = full.replace(b'{"bits":"0', b'{"bits":"1')
        with pytest.raises(BadData, match="differs from the manifest"):
            ids(part.batches(4096))
        site.files[shard] = full
        assert len(ids(part.batches(4096))) == len(part)
