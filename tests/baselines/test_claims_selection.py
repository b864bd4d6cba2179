"""Claims about choosing settings: several are tried, rules choose among them, and what was predicted is kept of all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from claim_pages import describe_quantity
from farshift import Answers, score
from farshift.baselines.reproduce.reproduce import (
    load_recorded_runs,
    make_run_plan,
    record_outcome,
    reproduce_claim,
    rescore_claim,
)
from farshift.baselines.running.search import draw_settings
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.claims.claim import Claim
from farshift.benchmarks.claims.outcome import read_recorded_outcome
from farshift.benchmarks.harness.evaluate import write_recorded_run
from farshift.core.errors import BadRun, UnknownName

from . import small_claim

ON = "optdigits/writers"
RULES = ("id_val", "last", "oracle")
RUN = {"recipe": "mlp", "on": ON, "steps": 8, "seeds": 2, "search": 3, "selection": "crafted_shift"}


def made(run: dict | None = None, **changes) -> Claim:
    scores = {rule: {"sort": "score", "run": "network", "rule": rule} for rule in RULES}
    full = {
        "kind": "domain",
        "runs": {"network": run or RUN},
        "quantities": scores
        | {
            "crafted": {"sort": "score", "run": "network"},
            "regret": {"sort": "difference", "left": "oracle", "right": "id_val"},
        },
        "rules": [{"shape": "at_least", "quantity": "regret", "limit": 0.0}],
    }
    return small_claim.made(**full | changes)


def test_what_each_rule_chooses_is_measured_kept_and_judged_again(tmp_path):
    item = made()
    result, evidence = reproduce_claim(item, tmp_path / "out")
    run = evidence.runs["network"]
    assert run.candidates == run.finals == ("draw-0/last", "draw-1/last", "draw-2/last")
    by_rules = score(run).selections
    for quantity, rule in {"crafted": "crafted_shift", **{rule: rule for rule in RULES}}.items():
        expected = by_rules[rule]
        assert result.quantities[quantity].value == pytest.approx(expected.ood.value, abs=1e-6)
        assert result.runs["network"]["chosen"][rule] == {str(seed): name for seed, name in expected.chosen.items()}
    assert result.runs["network"]["settings"]["draw-0"] == {}
    assert result.runs["network"]["settings"]["draw-1"] == draw_settings("mlp", ON, 3)["draw-1"]
    regret, expected = result.quantities["regret"], by_rules["id_val"].regret
    assert (regret.value, regret.low, regret.high) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=1e-6
    )
    assert regret.interval == "95 % t interval over paired test rows and paired training seeds"

    home = tmp_path / "home"
    record_outcome(result, evidence, home=home)
    again = rescore_claim(item, home)
    assert {name: value.to_dict() for name, value in again.quantities.items()} == {
        name: value.to_dict() for name, value in result.quantities.items()
    }
    assert (
        json.loads(json.dumps(read_recorded_outcome(item, home).to_dict()))["runs"]
        == read_recorded_outcome(item, home).runs
    )
    columns = ["part", "row_id", "seed", "candidate", "prediction", "status"]
    before, after = (
        each.predictions().select(columns) for each in (run, load_recorded_runs(item, home).runs["network"])
    )
    assert sorted(set(before["part"].to_pylist())) == ["crafted_shift", "id_test", "id_val", "ood_test"]
    keys = [(name, "ascending") for name in ("part", "seed", "candidate", "row_id")]
    assert before.sort_by(keys).equals(after.sort_by(keys))


def test_the_short_form_may_try_fewer_settings(tmp_path):
    run = made(RUN | {"quick": {"search": 2}}).runs["network"]
    assert len(make_run_plan(run, tmp_path, True, None, "cpu").settings) == 2
    assert len(make_run_plan(run, tmp_path, False, None, "cpu").settings) == 3
    with pytest.raises(ValueError, match=r"quick\.search requires search"):
        made({"recipe": "mlp", "on": ON, "quick": {"search": 2}})


def test_the_rule_and_the_number_of_settings_are_part_of_a_claims_identity():
    plain = {name: value for name, value in RUN.items() if name != "search"}
    assert len({made().identity, made(RUN | {"search": 4}).identity, made(plain).identity}) == 3
    turned = {"regret": {"sort": "difference", "left": "id_val", "right": "oracle"}}
    assert made(quantities=made().model_dump()["quantities"] | turned).identity != made().identity


def test_a_rule_that_cannot_choose_is_refused(tmp_path):
    run = RUN | {"selection": "id_val"}
    quantity = {"sort": "score", "run": "network", "rule": "crafted_shift"}
    rules = [{"shape": "positive", "quantity": "x"}]
    with pytest.raises(
        BadRun, match="the selection rule crafted_shift cannot be applied: the run has no predictions for crafted_shift"
    ):
        reproduce_claim(made(run, quantities={"x": quantity}, rules=rules), tmp_path)
    with pytest.raises(UnknownName, match="oracle"):
        reproduce_claim(made(run, quantities={"x": quantity | {"rule": "orakle"}}, rules=rules), tmp_path)


def test_a_recorded_run_needs_answers_to_the_rows_that_its_rule_asks_for(tmp_path):
    benchmark = find_benchmark(ON)
    parts = {
        part: Answers(np.zeros(len(benchmark.part(part)), np.int64), np.zeros(len(benchmark.part(part)), np.int8))
        for part in benchmark.predicted_parts
    }
    model = {"name": "zeros", "kind": "own", "code": "none"}
    assert write_recorded_run(benchmark, tmp_path / "plain", model, [{"last": parts}]).candidates == ("last",)
    with pytest.raises(BadRun, match="optdigits/writers: there are no predictions for crafted_shift"):
        write_recorded_run(benchmark, tmp_path / "x", model, [{"last": parts}], selection="crafted_shift")
    assert not (tmp_path / "x").exists()


def test_the_page_says_how_many_settings_were_tried_and_who_chose():
    output = describe_quantity(made(), made().quantities["oracle"])
    assert output == "OOD score of mlp on optdigits/writers, selected among 3 settings by oracle"
    assert "by crafted_shift" in describe_quantity(made(), made().quantities["crafted"])
