"""The home page's leaders and chart, a page for each model, downloads of tables, and the text of a split's rule."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pyarrow.parquet as pq
from farshift.core.plugins import PACKAGE
from farshift.leaderboard.publish.entries import SOURCE
from farshift.leaderboard.publish.home import make_home_rows
from farshift.leaderboard.publish.site import Site
from made_tables import entry, snapshot
from page_reader import Read, list_defects

BASELINE = {"kind": "baseline"}


def make_entry(model: str, share: float, benchmark: str = "scan/length", kind: str = "length", card=BASELINE, **said):
    standing, rows = entry(model, share, benchmark, kind=kind, **said)
    return standing, replace(rows, card=card)


def read_card(site: Site, kind: str) -> str:
    """The text of a kind's card of leaders."""
    page = site.pages["index.html"].render().decode()
    cards = page[page.index('<ul class="cards">') :].partition("</ul>")[0].split("<li>")
    (card,) = (card for card in cards if f">{kind.capitalize()}</a>" in card)
    return Read(card.replace("</li>", "")).text


def test_a_naive_baseline_never_leads_and_comes_last():
    built = [make_entry("most-frequent", 0.8), make_entry("lstm", 0.8), make_entry("gru", 0.3)]
    site = Site(snapshot(built))
    card = read_card(site, "length")
    assert "lstm" in card and "most-frequent" not in card
    assert "No clear lead: 2 of 3 models are tied for first, 1 of them constant or undertrained." in card
    assert [row.model for row in make_home_rows(site.snapshot)] == ["lstm", "gru", "most-frequent"]


def test_another_teams_model_of_a_baselines_name_may_lead():
    built = [make_entry("most-frequent", 0.8, card={"kind": "own"}), make_entry("lstm", 0.3)]
    assert "Clear lead: significantly better than the 1 other model." in read_card(Site(snapshot(built)), "length")


def test_without_a_model_that_has_learnt_nobody_leads():
    card = read_card(Site(snapshot([make_entry("most-frequent", 0.8), make_entry("nearest-answer", 0.2)])), "length")
    assert "2 models, of which none is ranked and has learnt the task." in card


def test_a_lead_over_several_benchmarks_says_on_how_many():
    shares = {"optdigits/writers": (0.9, 0.5), "vowel/speakers": (0.6, 0.6)}
    built = [
        make_entry(model, value[k], on, "domain")
        for on, value in shares.items()
        for k, model in enumerate(("erm", "irm"))
    ]
    card = read_card(Site(snapshot(built)), "domain")
    assert "No clear lead: best, or tied for best, on 2 of 2 benchmarks, among 2 models." in card


def test_the_interval_of_a_mean_stays_within_the_scale():
    built = []
    for on in ("optdigits/writers", "vowel/speakers"):
        for model, value in (("erm", 0.97), ("irm", 0.99)):
            standing, rows = make_entry(model, value, on, "domain")
            ends = {name: replace(getattr(standing.score, name), low=0.5, high=1.0) for name in ("id", "ood")}
            built.append((replace(standing, score=replace(standing.score, **ends)), rows))
    means = [row.cells["domain"].means for row in make_home_rows(snapshot(built))]
    assert [mean["ood"].high for mean in means] == [1.0, 1.0]
    assert all(mean["ood"].low < mean["ood"].value < 1.0 for mean in means)


def test_the_chart_has_a_point_for_each_model_and_kind_with_its_data_in_a_table():
    built = [make_entry(model, 0.5) for model in ("lstm", "gru")]
    built += [make_entry(model, 0.5, "vowel/speakers", "domain") for model in ("lstm", "most-frequent")]
    page = Site(snapshot(built)).pages["index.html"].render().decode()
    chart = page[page.index('<div class="chart">') : page.index('<h2 id="models">')]
    assert chart.count('class="c0 ') == 2 + 1 and chart.count('class="c1 ') == 2 + 1  # the legend has one of each
    assert chart.count('class="c0 hollow"') == 1
    assert sum("lstm" in cell for row in Read(chart).cells for cell in row) == 2


def test_a_model_has_a_page_with_its_results_on_every_benchmark():
    shares = {"scan/length": "length", "vowel/speakers": "domain", "modadd97/xi35": "corrupted-label"}
    built = [make_entry("lstm", 0.5, on, kind) for on, kind in shares.items()]
    built += [make_entry("lstm", 0.4, team="them"), make_entry("<script>", 0.3, card={"kind": "own"})]
    site = Site(snapshot(built))
    pages = {path: site.pages[path].render().decode() for path in site.pages if path.startswith("models/")}
    assert len(pages) == 3
    (page,) = (page for page in pages.values() if page.count("entries/") == 3)
    assert all(f">{on}</a>" in page for on in shares)
    assert "arxiv.org/abs/1711.00350" in page and f"{SOURCE}/baselines/networks/lstm.py" in page
    assert list_defects(site, lambda path: "submissions/" in path) == []


def test_every_baseline_has_a_link_to_its_paper_and_to_code_that_exists():
    names = sorted(file.stem for file in (PACKAGE / "baselines" / "recipes").glob("*.toml"))
    site = Site(snapshot([make_entry(name, 0.5) for name in names[:: max(1, len(names) // 30)]]))
    for path in (path for path in site.pages if path.startswith("models/")):
        page = site.pages[path].render().decode()
        paper = page[page.index("<dt>Paper</dt>") : page.index("<dt>Code</dt>")]
        assert re.search(r'href="https://(arxiv\.org/abs|doi\.org|scholar\.google\.com/scholar)', paper), path
        files = re.findall(rf'href="{re.escape(SOURCE)}/([^"]+)"', page)
        assert files and all((PACKAGE / file).is_file() for file in files), path


def test_a_table_can_be_downloaded_in_three_formats_with_the_same_rows():
    board = snapshot([make_entry(model, 0.5) for model in ("lstm", "gru")] + [make_entry("mlp", 0.5, "modadd97/xi35")])
    site = Site(board)
    for name, count in (("all", 3), (board.views[0].anchor, len(board.views[0].rows))):
        files = {suffix: site.pages[f"tables/{name}.{suffix}"].render() for suffix in ("csv", "json", "parquet")}
        listed = json.loads(files["json"])
        assert len(listed) == count
        entries = [row["entry"] for row in listed]
        assert [row["entry"] for row in csv.DictReader(io.StringIO(files["csv"].decode()))] == entries
        assert pq.read_table(io.BytesIO(files["parquet"])).to_pylist() == listed
    links = Read(site.pages["benchmarks/scan/length.html"].render()).links
    assert sum(link.startswith("../../tables/scan-length-") for link in links) == 3
