"""The pages of the ledger, windows, teams, entries and comparisons, and of how to submit."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from posixpath import normpath
from types import SimpleNamespace

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.statistics.interval import estimate_paired_difference
from farshift.leaderboard.board import Board
from farshift.leaderboard.entries import Removal, ScoreRecord
from farshift.leaderboard.operations.submit import submit_runs, withdraw_entry
from farshift.leaderboard.publish.compare import compare_entries, list_pairs, make_compare_page, make_pair_path
from farshift.leaderboard.publish.entries import make_team_slug
from farshift.leaderboard.publish.ledger import LONGEST, SIZE, describe_record, describe_window
from farshift.leaderboard.publish.site import Site, build_site
from farshift.leaderboard.sealed.window import Window
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.snapshot import take_snapshot
from made_tables import entry, snapshot
from page_reader import Read, list_defects

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnihsihp\u202c and \u200b\x1b[2J",
    "{{ 7 * 7 }}{% raw %}",
    "</pre></details></main>",
    "x" * 10_000,
]
"""What strangers may write."""


class Ledger:
    """A view that has records alone."""

    def __init__(self, records) -> None:
        self.card, self._records = {"key": "ab" * 32}, records

    def records(self):
        return self._records


def hostile(text: str) -> Site:
    """A board on which everything that others may write is this text."""
    built = [entry(f"{text}{k}", 0.3 + 0.1 * k, team=text, groups={text: 0.4, "other": 0.3}) for k in range(3)]
    (first, rows), *others = built
    declared = {name: [text] for name in ("training_data", "pretraining")}
    declared |= {"links": [f"https://x/{text}", f"javascript:{text}"]}
    declared |= dict.fromkeys(("budget", "protocol", "contact"), text)
    card = dict.fromkeys(("kind", "code", "device", "finished", "pretrained"), text)
    rows = replace(rows, card={**card, "seconds": 1.0, "environment": {text: text}, "declared": declared})
    gone = replace(others[0][0], entry="f" * 16, left=Removal("removed", text, "2026"))
    window = {
        "terms": dict.fromkeys(("window", "benchmark", "split", "closes", "cipher", "reveals"), text),
        "commitment": text,
        "seed": None,
        "answers": 1,
        "entries": [{"team": text, "model": text, "score": None, "contrast": {}, "n/a": text}],
    }
    shown = snapshot([(first, rows), *others], {}, apart=[gone], windows=[window], name=text)
    bodies = [
        ("opened", {"name": text, "key": text}),
        ("submitted", {"team": text, "note": text, "entries": [{"entry": first.entry}]}),
        ("withdrawn", {"entry": first.entry, "reason": text}),
        ("unknown", {"team": text, "reason": text, "entry": text}),
        (text, {text: text}),
        ("scored", {"unexpected": text}),
    ]
    records = [replace(shown.head, seq=k, kind=kind, body=body) for k, (kind, body) in enumerate(bodies)]
    return Site(replace(shown, head=records[-1]), Ledger(records))


@pytest.mark.attack("visitor", "scripts, links and invisible characters in names and notes of others, on every page")
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12].encode("unicode_escape").decode())
def test_text_of_strangers_is_written_out_on_every_page(text):
    pages = {path: page for path, page in hostile(text).pages.items() if path.endswith(".html")}
    # a comparison needs a board's submissions
    contents = {path: page.render() for path, page in pages.items() if page.template != "compare.html"}
    assert len(contents) >= 10
    for path, content in contents.items():
        read = Read(content)
        assert read.wrong == [], path
        assert all(".." in item or item.startswith("static/") for item in read.loaded), path
        assert not any(link.startswith("javascript:") for link in read.links), path
        assert not set("\u202e\u202c\u200b\x1b") & set(content.decode()), path
        assert len(content) < 4_000_000, path


@pytest.fixture(scope="module")
def walked(tmp_path_factory, runs):
    """A small real board: three entries of two tables, one withdrawn; and its site."""
    board = Board.init(tmp_path_factory.mktemp("walked") / "board", "A board")
    file = tmp_path_factory.mktemp("packed") / "one.zip"
    submit_runs(board, pack_runs(runs, file, team="us"))
    gone, *_ = [item for item in board.standings() if item.benchmark == "scan/length"]
    withdraw_entry(board, gone.entry, "a bug")
    return board, Site(take_snapshot(board), board)


@pytest.mark.parametrize(("files", "where"), [("", ""), ("../", "site/"), (None, "elsewhere/")])
def test_every_link_of_every_page_leads_to_a_page_or_to_a_file_of_the_board(walked, files, where):
    board, site = walked
    assert list_defects(replace(site, files=files), lambda path: (board.path / normpath(where + path)).is_file()) == []


def test_predictions_are_linked_from_pages_beside_the_board_s_files(walked, tmp_path):
    board, _ = walked
    for out, linked in ((None, 3), (tmp_path / "elsewhere", 0)):
        pages = [page.read_text() for page in (build_site(board, out).parent / "entries").iterdir()]
        assert (len(pages), sum('href="../../submissions/' in page for page in pages)) == (3, linked)


def test_the_ledger_shows_its_head_every_record_and_what_left_the_tables(walked):
    board, site = walked
    records = board.records()
    head = Read(site.pages["ledger.html"].render())
    for shown in (records[-1].hash, records[-1].signature, board.card["key"], "its team", "a bug"):
        assert shown in head.text
    (gone,), (record,) = site.snapshot.apart, [item for item in records if item.kind == "withdrawn"]
    assert {f"ledger/0.html#record-{record.seq}", f"entries/{gone.entry}.html"} <= set(head.links)
    assert "could not be read" not in Read(site.pages[f"entries/{gone.entry}.html"].render()).text
    page = Read(site.pages["ledger/0.html"].render()).text
    assert all(record.hash in page for record in records)
    assert "a bug" in page
    accepted = replace(entry("taken out", 0.9)[0], left=Removal("removed", "rows of the test", "2026-02-03T00:00:00Z"))
    page = Site(snapshot([entry("one", 0.5)], apart=[accepted])).pages["benchmarks/scan/length.html"]
    assert "(removed: rows of the test)" in Read(page.render()).text


def test_ledger_pages_are_of_fixed_ranges_so_that_a_full_one_never_changes():
    shown = snapshot([entry("one", 0.5)])
    records = [replace(shown.head, seq=k, kind="opened" if not k else "scored", body={}) for k in range(2 * SIZE + 5)]

    def ledger(count: int) -> dict[str, bytes]:
        site = Site(replace(shown, head=records[count - 1]), Ledger(records[:count]))
        return {path: page.render() for path, page in site.pages.items() if path.startswith("ledger/")}

    earlier, later = ledger(SIZE), ledger(2 * SIZE + 5)
    assert sorted(earlier) == ["ledger/0.html", "ledger/1.html"]
    assert earlier["ledger/0.html"] == later["ledger/0.html"]
    assert sorted(later) == ["ledger/0.html", "ledger/1.html", "ledger/2.html"]
    assert "There are no such records yet" in Read(earlier["ledger/1.html"]).text
    assert f"record-{SIZE - 1}" in Read(later["ledger/0.html"]).ids


def test_a_long_record_is_cut_and_says_so():
    line = describe_record(replace(snapshot([]).head, body={"note": "y" * 50_000}), {})
    assert line["cut"] and len(line["json"]) == LONGEST


def test_a_team_s_page_has_its_entries_attempts_and_those_that_left(walked):
    assert make_team_slug("name:") == ""
    assert make_team_slug("name:us") == f"name-{sha256(b'us').hexdigest()[:16]}"
    key = "ab" * 32
    assert make_team_slug(f"key:{key}") == sha256(bytes.fromhex(key)).hexdigest()[:16]
    text = Read(walked[1].pages[f"teams/{make_team_slug('name:us')}.html"].render()).text
    for shown in ("no key", "2 in tables, 1 withdrawn or removed", "a bug", "modadd97/xi35: 2"):
        assert shown in text


def test_a_window_stands_where_its_records_say_and_no_clock_is_read():
    terms = {"window": "w", "closes": "B", "reveals": "C"}
    for secret, state in ((None, "Open for answers until B"), (b"s", "Revealed")):
        described = describe_window({"terms": terms, "seed": secret}, Window(None, {}, secret=secret))
        assert (described["state"], described["takes_answers"]) == (state, secret is None)


def test_a_benchmark_s_page_names_the_split_and_its_identity(walked):
    manifest = find_benchmark("modadd97/xi35").manifest
    text = Read(walked[1].pages["benchmarks/modadd97/xi35.html"].render()).text
    assert manifest.full_name in text and manifest.identity in text


def test_the_command_that_recomputes_an_entry_runs_as_it_is_printed(walked, tmp_path, python):
    board, site = walked
    row = next(row for view in site.snapshot.views for row in view.rows)
    page = site.pages[f"entries/{row.standing.entry}.html"].render().decode()
    command = page.split("farshift score ")[1].split("</pre>")[0].split()[0]
    (tmp_path / command).write_bytes(board.submission_file(row.standing.submission).read_bytes())
    done = python.run("-m", "farshift", "score", command, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = {item["model"]: item for item in json.loads(done.stdout)}[row.standing.score.model]
    assert result["ood"] == json.loads(json.dumps(row.standing.score.ood.to_dict()))


def test_an_entry_s_page_shows_its_card_its_groups_in_each_seed_and_its_earlier_scores():
    values = {"id": 0.5, "ood": 0.25}
    (standing, rows), other = entry("one", 0.4, groups={"left": 0.2, "right <b>": 0.6}), entry("two", 0.5)
    rescored = ScoreRecord(
        entry=standing.entry, entry_identity="a" * 64, scorer=4, files={}, replaces=3, before=values, after=values
    )
    card = {
        "parameters": 1234,
        "environment": {"python": "3.12"},
        "declared": {"training_data": [], "pretraining": ["c4"]},
        "pretrained": "ImageNet-1k",
    }
    site = Site(snapshot([(replace(standing, scores=(rescored,)), replace(rows, card=card)), other]))
    read = Read(site.pages[f"entries/{standing.entry}.html"].render())
    for shown in ("1,234", "python 3.12", "Declared training data none", "Declared pretraining c4"):
        assert shown in read.text
    assert any(row[0] == "3 to 4" and row[1] == "25.00" for row in read.cells)
    each_seed = {row[0]: len(row[-1].split()) for row in read.cells if row[0] in ("left", "right <b>")}
    assert each_seed == dict.fromkeys(("left", "right <b>"), len(standing.score.seeds))
    assert "Pretrained on ImageNet-1k" in read.text
    table = Read(site.pages["benchmarks/scan/length.html"].render()).text
    assert table.count("pretrained on ImageNet-1k") == 1


def test_a_comparison_tells_both_intervals_where_the_entries_differ_and_on_which_rows():
    built = [entry("good", 0.7), entry("worse", 0.4), entry("third", 0.5)]
    view = snapshot(built).views[0]
    rows = {standing.entry: result for standing, result in built}
    count = built[0][1].ood.rows
    group = np.arange(count) % 3
    parts = {
        "id": SimpleNamespace(row_ids=np.arange(count, dtype=np.uint64), row_metadata={}),
        "ood": SimpleNamespace(
            row_ids=np.arange(count, dtype=np.uint64) + 10**6, row_metadata={"group": np.array(["a", "b", "c"])[group]}
        ),
    }
    pair = tuple(next(row for row in view.rows if row.standing.score.model == name) for name in ("good", "worse"))
    names = [row.standing.entry for row in pair]
    result = compare_entries(view, pair, rows, parts)
    assert result["max_t"] == view.pairs.apart(*names)
    x, y = (rows[name].ood for name in names)
    assert result["t"]["ood"] == estimate_paired_difference(x, y).to_dict()
    assert result["p"] < 0.01
    first = result["groups"][0]
    inside = group == "abc".index(first["group"])
    assert first["values"] == pytest.approx([item.scores[:, inside].mean() for item in (x, y)], abs=1e-6)
    assert first["difference"]["low"] < first["difference"]["value"] < first["difference"]["high"]
    item, other = x.scores.mean(axis=0) > 0.5, y.scores.mean(axis=0) > 0.5
    counts = {sort["words"]: sort["count"] for sort in result["rows"]}
    assert counts == {
        "both are correct": int((item & other).sum()),
        "neither is correct": int((~item & ~other).sum()),
        "only good is correct": int((item & ~other).sum()),
        "only worse is correct": int((other & ~item).sum()),
    }
    alone = next(sort for sort in result["rows"] if sort["words"] == "only good is correct")
    assert alone["rows"] and all((item & ~other)[id - 10**6] for id in alone["rows"])
    assert compare_entries(view, pair, rows, None)["lacking"]
    assert compare_entries(view, pair, {}, parts)["lacking"]


def test_rows_of_a_score_between_0_and_1_are_compared_by_which_entry_is_better_on_them():
    built = [entry(name, share) for name, share in (("good", 0.7), ("worse", 0.4))]
    view = snapshot(built).views[0]
    halved = {item.entry: replace(rows, ood=replace(rows.ood, scores=rows.ood.scores / 2)) for item, rows in built}
    counts = {sort["words"]: sort["count"] for sort in compare_entries(view, view.rows, halved, None)["rows"]}
    left, right = (halved[row.standing.entry].ood.scores.mean(axis=0) for row in view.rows)
    better = {"only good scores better": left > right, "only worse scores better": left < right}
    assert counts == {"both score the same": int((left == right).sum())} | {
        words: int(rows.sum()) for words, rows in better.items()
    }


def test_pairs_that_have_a_page_are_those_of_the_first_entries_and_of_the_baseline():
    built = [entry(f"model {k}", 0.2 + 0.02 * k) for k in range(20)]
    pairs = list_pairs(snapshot(built, baseline="model 0").views[0])
    names = {(left.standing.score.model, right.standing.score.model) for left, right in pairs}
    assert ("model 19", "model 18") in names and ("model 10", "model 0") in names
    assert ("model 9", "model 0") not in names
    assert len(pairs) == 3 + 10


def test_a_comparison_of_two_entries_of_one_table_is_made_and_others_are_refused(walked):
    _, site = walked
    view = next(view for view in site.snapshot.views if len(view.rows) == 2)
    left, right = view.rows
    names = [right.standing.entry, left.standing.entry]
    page = make_compare_page(site.snapshot, site.view, names, "api/v1/compare", site.frame).render()
    read = Read(page)
    assert "Row by row" in read.text and "../../static/style.css" in read.loaded
    assert Read(site.pages[make_pair_path(left, right)].render()).text == read.text
    assert "<dt>a</dt>" in page.decode(), "generated rows are shown"
    for wrong in (names[:1], ["nobody", names[0]], [*names, "0" * 16]):
        with pytest.raises(FarshiftError):
            make_compare_page(site.snapshot, site.view, wrong, "x.html")


def test_the_submit_page_names_a_benchmark_of_the_board_and_says_how_without_a_server(walked):
    board, site = walked
    page = site.pages["submit.html"].render().decode()
    read = Read(page)
    assert f"--on {site.snapshot.views[0].benchmark}" in read.text
    assert board.card["key"] in read.text
    assert 'data-board="farshift submit submission.zip --to {}"' in page
    assert "static/submit.js" in read.loaded
