"""The pages: every entry, its rank set and ties, what is listed apart; HTML that anyone can read without a script."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farshift.leaderboard.entries import Removal
from farshift.leaderboard.publish.page import BAR, compute_rank_bar, make_strip_scale
from farshift.leaderboard.publish.site import Site, write_site
from made_tables import entry, snapshot
from page_reader import Read, list_defects

LENGTH = "benchmarks/scan/length.html"


@pytest.fixture(scope="module")
def board():
    """Forty entries on one benchmark, a few on another, one withdrawn, one of an older identity."""
    groups = {"left": 0.5, "right": 0.6}
    built = [entry(f"model {k}", 0.2 + 0.015 * k, groups=groups, made=k) for k in range(40)]
    built += [
        entry("model 3", 0.6, "modadd97/xi35", kind="corrupted-label"),
        entry("<script>", 0.7, "modadd97/xi35", kind="corrupted-label"),
    ]
    built.append(entry("old", 0.5, "vowel/speakers", kind="domain", identity="0" * 64))
    gone, _ = entry("gone", 0.9)
    first = built[0][0]
    apart = [replace(gone, left=Removal("withdrawn", "the labels were in the training data", "2026-02-03T00:00:00Z"))]
    return snapshot(
        built,
        {("us", first.score.entry_identity): 41},
        "model 7",
        apart=apart,
    )


@pytest.fixture(scope="module")
def pages(board, tmp_path_factory) -> dict[str, str]:
    where = tmp_path_factory.mktemp("site")
    write_site(Site(board), where)
    return {path.relative_to(where).as_posix(): path.read_text() for path in sorted(where.rglob("*.html"))}


def test_there_is_an_index_and_a_page_for_each_benchmark_and_entry(board, pages):
    names = [row.standing.entry for table_view in board.views for row in table_view.rows] + [board.apart[0].entry]
    due = {f"benchmarks/{name}.html" for name in ("index", "modadd97/xi35", "scan/length", "vowel/speakers")}
    due |= {"index.html", "about.html", "statistics.html", *(f"entries/{name}.html" for name in names)}
    assert due <= set(pages)
    assert ">0 to 100</th>" in pages[LENGTH] and "not in percent" not in pages[LENGTH]


def test_markup_is_whole_every_link_leads_somewhere_and_every_picture_has_words(board):
    assert list_defects(Site(board)) == []


def test_entries_stand_by_score_with_their_rank_sets_and_ties(board, pages):
    (table_view,) = (table_view for table_view in board.views if len(table_view.rows) == 40)
    places = [pages[LENGTH].index(f"entries/{row.standing.entry}.html") for row in table_view.rows]
    assert places == sorted(places)
    for row in table_view.rows:
        low, high = row.rank
        output = f"rank {low}" if low == high else f"rank {low} to {high}"
        assert f'aria-label="{output} of 40"' in pages[LENGTH]
    assert any(row.rank[0] < row.rank[1] for row in table_view.rows)
    assert (make_strip_scale(table_view).low, make_strip_scale(table_view).high) == (0.0, 1.0)


def test_what_left_and_what_is_of_an_older_identity_stand_apart(board, pages):
    index, page = pages["index.html"], pages["benchmarks/vowel/speakers.html"]
    assert index.count("the labels were in the training data") == 1
    assert index.index("Withdrawn and removed entries") < index.index(f"entries/{board.apart[0].entry}.html")
    assert "Withdrawn" in pages[f"entries/{board.apart[0].entry}.html"]
    assert page.index("Tables of an older identity") < page.index("Entries of an older identity; not comparable")
    assert ">old</a>" not in index


def test_a_page_of_an_entry_that_is_no_more_goes(tmp_path):
    write_site(Site(snapshot([entry("one", 0.5), entry("another", 0.5)])), tmp_path)
    assert len(list((tmp_path / "entries").iterdir())) == 2
    write_site(Site(snapshot([entry("another", 0.5)])), tmp_path)
    assert len(list((tmp_path / "entries").iterdir())) == 1


def test_a_bar_of_ranks_covers_its_set_and_a_strip_its_scale(board):
    (table_view,) = (table_view for table_view in board.views if len(table_view.rows) == 40)
    bars = [compute_rank_bar(row, 40) for row in table_view.rows]
    assert all(0 <= bar["x"] <= bar["x"] + bar["width"] <= BAR + 3 for bar in bars)
    assert compute_rank_bar(replace(table_view.rows[0], rank=(1, 40)), 40) == {"x": 0, "width": BAR}
    assert compute_rank_bar(replace(table_view.rows[0], rank=None), 40) is None
    scale = make_strip_scale(table_view)
    assert scale.at(-3) == scale.at(0) < scale.at(0.5) < scale.at(1) == scale.at(7)


def test_sealed_windows_show_the_contrast_of_public_and_sealed(tmp_path):
    built = [entry("seen", 0.9), entry("other", 0.5)]
    (item, _), score = built[0], built[0][0].score.to_dict()
    difference = {"value": 0.2, "low": 0.1, "high": 0.3, "p_holm": 0.001, "flag": "better on public"}
    terms = dict.fromkeys(("benchmark", "window", "closes", "reveals", "split", "cipher"), "w1")
    entries = [
        {"team": "us", "model": "seen", "submission": item.submission, "score": score, "n/a": None}
        | {"contrast": dict.fromkeys(("id", "ood"), difference)},
        {"team": "them", "model": "<b>", "submission": "e" * 64, "score": None, "contrast": {}, "n/a": "it broke"},
    ]
    window = {"terms": terms, "commitment": "ab" * 32, "seed": "cd" * 32, "answers": 2, "entries": entries}
    write_site(Site(snapshot(built, windows=[window])), tmp_path)
    text = (tmp_path / "windows.html").read_text()
    assert "better on public" in text
    assert "+20.0" in text
    assert "n/a: it broke" in text
    assert Read(text).wrong == []


def test_an_empty_board_has_a_page(tmp_path):
    write_site(Site(snapshot([])), tmp_path)
    assert "No entries yet" in (tmp_path / "index.html").read_text()
