"""The home page's leaders and chart, a page for each model, downloads of tables, and the text of a split's rule."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import farshift as fs
import pyarrow.parquet as pq
import pytest
from farshift.benchmarks.runs.run import RunCard
from farshift.core.plugins import PACKAGE
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.publish.entries import SOURCE
from farshift.leaderboard.publish.home import make_home_rows
from farshift.leaderboard.publish.site import Site
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.entry_rows import LONGEST, MOST, make_entry_card
from farshift.leaderboard.tables.snapshot import take_snapshot
from farshift.leaderboard.validation.card import ModelCard
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
    assert "No clear lead: 2 of 3 models are tied for first, 1 of them constant or with a low ID score." in card
    assert [row["model"] for row in make_home_rows(site.snapshot)] == ["lstm", "gru", "most-frequent"]


def test_a_lead_is_one_over_ranked_models_only():
    built = [make_entry("nearest", 0.4), make_entry("one-seed", 0.9)]
    card = read_card(Site(snapshot(built, unranked=("one-seed",))), "length")
    assert "The only ranked model so far. 1 more is not ranked, and not compared." in card
    built.append(make_entry("gru", 0.1))
    card = read_card(Site(snapshot(built, unranked=("one-seed",))), "length")
    assert "Clear lead: significantly better than the 1 other model. 1 more is not ranked, and not compared." in card


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
    means = [row["cells"]["domain"]["means"] for row in make_home_rows(snapshot(built))]
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
    assert list_defects(site) == []


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


def card(**said) -> RunCard:
    run = {
        "format": 2,
        "benchmark": {"name": "b", "entry_identity": "", "selection": "last"},
        "model": {"name": "m", "candidates": ["last"], "finals": ["last"], "kind": "own", "code": "c0de"},
        "budget": {"name": "full", "seeds": [0], "device": "cpu"},
        "environment": {"python": "3.12"},
        "spent": {"finished": "2026-01-01T00:00:00Z", "seconds": 2.5, "by_seed": {}},
        "digests": {"predictions": "", "run": ""},
    }
    for name, table in said.items():
        run[name] |= table
    return RunCard.from_dict(run)


REPORTS = {"seed_0": {"parameters": 10.0}, "seed_1": {"parameters": 12}, "seed_2": {"loss": 0.1}}
RECORDED = json.dumps({"seconds": 30, "finished": "2025-01-01T00:00:00Z", "by_seed": {"seed_0": {"steps": 800.0}}})
WEIGHTS = [{"name": "a", "digest": "1", "trained_on": "ImageNet-1k"}, {"name": "b", "digest": "2"}]


@pytest.mark.parametrize(
    ("stated", "declared", "expected"),
    [
        ({}, {}, {"parameters": None, "pretrained": None, "seconds": 2.5}),
        ({"spent": {"by_seed": REPORTS}}, {}, {"parameters": 12}),
        ({"spent": {"by_seed": REPORTS}}, {"parameters": 7}, {"parameters": 7}),
        ({"model": {"pretrained": WEIGHTS}}, {}, {"pretrained": "ImageNet-1k"}),
        ({"model": {"pretrained": WEIGHTS[1:]}}, {}, {"pretrained": None}),
        ({"model": {"pretrained": "no list"}}, {}, {"pretrained": None}),
        ({"model": {"spent": RECORDED}}, {}, {"seconds": 30.0, "steps": 800, "finished": "2025-01-01T00:00:00Z"}),
    ],
)
def test_an_entrys_card_has_what_its_cards_state(stated, declared, expected):
    """The size that the model card declares, else the largest that a seed reports; what a recorded result's run spent,
    not what reading it did."""
    result = make_entry_card(card(**stated), ModelCard(**declared))
    assert {name: result.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "spent", ["[" * 100_000, "no JSON", "3", '{"by_seed": [1], "seconds": "x"}', '{"seconds": 1e999}']
)
def test_what_a_hostile_card_says_is_cut_or_left_out(spent):
    wide = {f"k{number:03}": "v" * 10_000 for number in range(500)}
    weights = [{"trained_on": "x" * 10_000}, {"trained_on": 3}, "no table"]
    result = make_entry_card(card(model={"spent": spent, "pretrained": weights}, environment=wide), ModelCard())
    assert len(result["environment"]) == MOST
    assert all(len(value) <= LONGEST for value in [*result["environment"].values(), result["pretrained"]])
    json.dumps(result, allow_nan=False)


def test_a_pair_is_apart_by_the_rule_of_the_whole_table():
    view = snapshot([entry(f"model {k}", 0.2 + 0.1 * k) for k in range(4)]).views[0]
    first, second, *_ = (row.standing.entry for row in view.rows)
    result = view.pairs.apart(second, first)
    assert result == view.rows[1].behind
    back = view.pairs.apart(first, second)
    assert (back["value"], back["low"], back["high"]) == pytest.approx(
        (-result["value"], -result["high"], -result["low"])
    )
    assert view.pairs.apart(first, "nobody") is None


def test_a_board_knows_the_cards_of_its_entries(board, runs, tmp_path):
    submit_runs(board, pack_runs(runs[:1], tmp_path / "one.zip", team="us"))
    (view,) = take_snapshot(board).views
    output = view.rows[0].card
    assert output["environment"]["farshift"] == fs.__version__
    assert output["declared"] == {"training_data": ["unknown"], "pretraining": ["unknown"]}
