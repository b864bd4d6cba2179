"""What is kept of an entry's cards and of its pairs."""

from __future__ import annotations

import json

import farshift as fs
import pytest
from farshift.benchmarks.runs.card import RunCard
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.entry_rows import LONGEST, MOST, make_entry_card
from farshift.leaderboard.tables.snapshot import take_snapshot
from farshift.leaderboard.validation.card import ModelCard
from made_tables import entry, snapshot


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


def test_the_size_is_what_the_model_card_declares_else_the_largest_that_a_seed_reports():
    by_seed = {"seed_0": {"parameters": 10.0}, "seed_1": {"parameters": 12}, "seed_2": {"loss": 0.1}}
    run = card(spent={"by_seed": by_seed})
    assert make_entry_card(run, ModelCard())["parameters"] == 12
    assert make_entry_card(run, ModelCard(parameters=7))["parameters"] == 7
    assert "parameters" not in make_entry_card(card(), ModelCard())


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([{"name": "a", "digest": "1", "trained_on": "ImageNet-1k"}, {"name": "b", "digest": "2"}], "ImageNet-1k"),
        ([{"trained_on": "x" * 10_000}, {"trained_on": 3}, "no table"], "x" * 100),
        ([{"name": "b", "digest": "2"}], None),
        ("no list", None),
    ],
)
def test_what_pretrained_weights_were_trained_on_is_told_where_the_run_says_it(weights, expected):
    stated = make_entry_card(card(model={"pretrained": weights}), ModelCard()).get("pretrained")
    assert stated is None if expected is None else stated.startswith(expected) and len(stated) <= LONGEST


def test_a_recorded_result_tells_what_its_run_spent_and_not_what_reading_it_did():
    recorded = json.dumps({"seconds": 30, "finished": "2025-01-01T00:00:00Z", "by_seed": {"seed_0": {"steps": 800.0}}})
    result = make_entry_card(card(model={"spent": recorded}), ModelCard())
    assert (result["seconds"], result["steps"], result["finished"]) == (30.0, 800, "2025-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "spent", ["[" * 100_000, "no JSON", "3", '{"by_seed": [1], "seconds": "x"}', '{"seconds": 1e999}']
)
def test_what_a_hostile_card_says_is_cut_or_left_out(spent):
    wide = {f"k{number:03}": "v" * 10_000 for number in range(500)}
    result = make_entry_card(card(model={"spent": spent}, environment=wide), ModelCard())
    assert len(result["environment"]) == MOST
    assert all(len(value) <= LONGEST for value in result["environment"].values())
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
