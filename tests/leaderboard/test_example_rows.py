"""Example rows on a benchmark's page: of published data where the licence permits it and they are on the disk."""

from __future__ import annotations

import re
from html import unescape

import farshift as fs
import picture_split
import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.publish.compare import list_pairs, make_pair_path
from farshift.leaderboard.publish.examples import (
    encode_png,
    find_benchmark_source,
    is_on_disk,
    is_redistributable,
    make_data_uri,
)
from farshift.leaderboard.publish.site import Site
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.snapshot import take_snapshot
from made_tables import entry, snapshot

FREE = "CC0 1.0"


def licensed(draft: str, licence: str) -> str:
    """The draft of a split whose data have a licence."""
    return draft.replace("data = { ", f'data = {{ licence = "{licence}", ')


def of_pictures(home, monkeypatch, licence: str):
    """A benchmark over a folder of pictures, which are read, and its site."""
    monkeypatch.setattr(picture_split, "SPLIT", licensed(picture_split.SPLIT, licence))
    benchmark = picture_split.split(home, monkeypatch)
    return benchmark, snapshot([entry("some model", 0.5, benchmark.name, kind="domain")])


def words(site: Site, name: str) -> str:
    """The words of a benchmark's page under "What shifts"."""
    page = site.pages[f"benchmarks/{name}.html"].render().decode()
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page[page.index('id="shift"') :])).split())


def test_pictures_that_are_on_the_disk_are_shown_as_pictures_with_their_licence(tmp_path, monkeypatch):
    _, board = of_pictures(tmp_path, monkeypatch, FREE)
    site = Site(board)
    page = site.pages["benchmarks/photos/sketch.html"].render().decode()
    assert page.count('<img src="data:image/png;base64,') == 6
    assert "CC0 1.0" in words(site, "photos/sketch")


def test_data_that_are_not_on_the_disk_are_not_fetched_for_a_page_and_a_line_says_so(tmp_path, monkeypatch):
    benchmark, board = of_pictures(tmp_path, monkeypatch, FREE)
    source = find_benchmark_source(benchmark)
    assert source is not None and is_on_disk(source)
    source.cached_at.unlink()
    site = Site(board)
    assert "the data were not on the disk where this page was made" in words(site, "photos/sketch")
    assert not is_on_disk(source)


def test_a_licence_that_does_not_let_everybody_pass_rows_on_is_named_instead_of_rows(tmp_path, monkeypatch):
    _, board = of_pictures(tmp_path, monkeypatch, "Non-commercial research only")
    site = Site(board)
    assert "does not permit redistribution (Non-commercial research only)" in words(site, "photos/sketch")
    assert "<img" not in site.pages["benchmarks/photos/sketch.html"].render().decode()


def colour(batch):
    """Left or right by a pixel: another answer for some pictures, the same for all copies of one."""
    return [sum(picture[:200]) % 2 for picture in batch["image"]]


def test_rows_on_which_entries_differ_are_shown_beside_their_ids_where_the_data_are(tmp_path, monkeypatch):
    benchmark, _ = of_pictures(tmp_path, monkeypatch, FREE)
    runs = [tmp_path / "byte", tmp_path / "left"]
    fs.evaluate(colour, on=benchmark.name, seeds=1, out=runs[0], name="byte")
    fs.evaluate(lambda batch: [0] * len(batch["image"]), on=benchmark.name, seeds=1, out=runs[1], name="left")
    board = Board.init(tmp_path / "board", "A board")
    submit_runs(board, pack_runs(runs, tmp_path / "both.zip", team="us"))
    site = Site(take_snapshot(board), board)
    (view,) = site.snapshot.views
    (pair,) = list_pairs(view)
    compared = site.pages[make_pair_path(*pair)]
    page = compared.render().decode()
    assert '<img src="data:image/png;base64,' in page and "Rows of" in page and "CC0 1.0" in page
    source = find_benchmark_source(benchmark)
    assert source is not None
    source.cached_at.unlink()
    assert "<img" not in Site(take_snapshot(board), board).pages[compared.path].render().decode()


@pytest.mark.parametrize(
    ("licence", "free"),
    [
        ("CC0", True),
        ("MIT", True),
        ("CC BY 4.0 (UCI); the package that carries the file is MIT", True),
        ("CC BY-SA 3.0, as it is usually given", True),
        ("CC BY-NC 4.0", False),
        ("CC BY-ND 4.0", False),
        ("", False),
        ("None stated; for research", False),
        ("MIT (CIFAR-10.1); the pictures state none", False),
        ("MIT (ImageNetV2); ImageNet: non-commercial research and education only", False),
        ("Apache-2.0 (the lists); the corpus has no stated licence", False),
        ("annotations CC BY 4.0; texts by genre, some CC BY-NC-SA", False),
        ("As its publisher states", False),
    ],
)
def test_only_a_known_free_licence_of_all_the_data_lets_a_page_show_rows(licence, free):
    assert is_redistributable(licence) is free


def test_a_dark_picture_is_brightened():
    assert encode_png([0, 16, 4, 8], (2, 2)) == encode_png([0, 240, 60, 120], (2, 2))
    assert encode_png([0, 200, 4, 8], (2, 2)) != encode_png([0, 240, 60, 120], (2, 2))


def test_an_encoded_picture_is_shown_as_it_is_unless_it_is_large_or_unknown():
    jpeg = b"\xff\xd8\xff" + bytes(40)
    assert make_data_uri(jpeg).startswith("data:image/jpeg;base64,")
    assert make_data_uri(jpeg + bytes(60_000)) == "" == make_data_uri(b"<svg onload='x'/>")
