"""What claims' rules say of values, of settings that are chosen and of diagnostics; and claims that are judged anew."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from claim_pages import describe_quantity
from farshift import Answers, score
from farshift.baselines.reproduce import measured
from farshift.baselines.reproduce.measured import (
    Evidence,
    combine_values,
    compute_mean_disagreement,
    pair_diagnostic_with_ood,
    read_diagnostics,
)
from farshift.baselines.reproduce.reproduce import (
    combine_verdicts,
    judge_rule,
    load_recorded_runs,
    make_run_plan,
    record_outcome,
    reproduce_claim,
    rescore_claim,
)
from farshift.baselines.running.results import digest_result, record_run
from farshift.baselines.running.search import draw_settings
from farshift.baselines.running.sweep import run_baseline
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.claims.claim import Claim, DiagnosticCorrelation, Score, load_claim
from farshift.benchmarks.claims.outcome import (
    Measurement,
    Outcome,
    RuleVerdict,
    get_stated_verdict,
    make_exact,
    read_recorded_outcome,
)
from farshift.benchmarks.harness.evaluate import write_recorded_run
from farshift.core.errors import BadRun, UnknownName
from support import ROOT

from . import small_claim
from .small_claim import made


class Known(Evidence):
    """Evidence whose scores are given."""

    def __init__(self, one: Claim, scores: dict[str, Measurement]) -> None:
        super().__init__(one, {})
        object.__setattr__(self, "given", scores)

    def measure(self, name: str) -> Measurement:
        return self.given[name]

    def score(self, quantity: Score) -> Measurement:
        return self.given[quantity.view]

    def between(self, left: Score, right: Score) -> Measurement:
        return combine_values([self.score(left), self.score(right)], [1, -1])


def judged(rule: dict, direction: bool = False, **scores: Measurement) -> str:
    item = made(
        quantities={name: {"sort": "score", "run": "network", "view": name} for name in scores},
        rules=[rule],
        quick={"rules": [{"shape": "positive", "quantity": next(iter(scores))}]},
    )
    (result,) = judge_rule(item.rules[0], scores, Known(item, scores), direction)
    return result.verdict


YES, NO, OPEN = "reproduced", "not reproduced", "inconclusive"
LEAST = {"shape": "at_least", "quantity": "x", "limit": 0.4}
WITHIN = {"shape": "within", "quantity": "x", "published": "test", "by": 0.02}
POSITIVE = {"shape": "positive", "quantity": "x"}
ORDER = {"shape": "order", "quantities": ["x", "y"]}


def ends(low: float, high: float) -> Measurement:
    return Measurement((low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("rule", "scores", "verdict"),
    [
        (LEAST, [(0.5, 0.7)], YES),
        (LEAST, [(0.1, 0.3)], NO),
        (LEAST, [(0.3, 0.6)], OPEN),
        (LEAST, [(0.4, 0.6)], YES),
        (WITHIN, [(0.005, 0.015)], YES),
        (WITHIN, [(0.1, 0.2)], NO),
        (WITHIN, [(0.0, 0.5)], OPEN),
        (WITHIN, [(-0.2, 0.0)], OPEN),
        (POSITIVE, [(0.0, 0.2)], OPEN),
        (POSITIVE, [(0.0, 0.0)], NO),
        (ORDER, [(0.4, 0.6), (0.1, 0.3)], YES),
        (ORDER, [(0.4, 0.6), (0.3, 0.6)], OPEN),
        (ORDER | {"by": 0.6}, [(0.4, 0.6), (0.1, 0.3)], NO),
    ],
)
def test_a_rule_holds_where_the_whole_interval_is_on_its_side(rule, scores, verdict):
    each = dict(zip("xy", (ends(*score) for score in scores), strict=False))
    assert judged(rule, **each) == verdict
    if rule == LEAST:
        assert (
            judged({"shape": "at_most", "quantity": "x", "limit": -0.4}, x=ends(*(-scores[0][k] for k in (1, 0))))
            == verdict
        )


def test_a_direction_is_judged_by_the_value_alone_and_what_is_not_defined_is_inconclusive():
    assert judged(POSITIVE, x=Measurement(0.1, -1.0, 1.0)) == OPEN
    assert judged(POSITIVE, direction=True, x=Measurement(0.1, -1.0, 1.0)) == YES
    assert judged(POSITIVE, x=Measurement(0.0, why="one seed")) == OPEN
    assert judged(POSITIVE, x=make_exact(0.0)) == NO


def test_the_interval_of_a_sum_is_that_of_independent_parts():
    x, y = Measurement(0.5, 0.4, 0.7), Measurement(0.2, 0.1, 0.25)
    result = combine_values([x, y], [1, -1])
    assert result.value == pytest.approx(0.3)
    assert result.low == pytest.approx(0.3 - (0.1**2 + 0.05**2) ** 0.5)
    assert result.high == pytest.approx(0.3 + (0.2**2 + 0.1**2) ** 0.5)


@pytest.mark.parametrize(
    ("premise", "rules", "mark", "verdict", "reason"),
    [
        (YES, (YES, YES), "seen", YES, "x: y; x: y"),
        (YES, (YES, OPEN), "seen", OPEN, "x: y"),
        (YES, (OPEN, NO), "seen", NO, "x: y"),
        (NO, (YES,), "seen", OPEN, "the premise is not met: x: y"),
        (
            YES,
            (YES,),
            "from memory",
            "comparison",
            "what is published is from memory, so no verdict; by the rule reproduced: x: y",
        ),
    ],
)
def test_a_claim_holds_with_all_its_rules_and_says_nothing_without_its_premise(premise, rules, mark, verdict, reason):
    judgements = [RuleVerdict("x", item, "y") for item in rules]
    assert combine_verdicts([RuleVerdict("x", premise, "y")], judgements, mark) == (verdict, reason)


@pytest.mark.parametrize(
    ("verdict", "stated"), [("not reproduced", "another setting"), ("reproduced", "reproduced"), ("comparison",) * 2]
)
def test_a_claim_fails_only_in_the_setting_of_its_paper(verdict, stated):
    outcome = replace(OUTCOME, verdict=verdict)
    elsewhere = made(setting={"steps": {"ours": 4, "paper": 40_000}})
    assert get_stated_verdict(elsewhere, outcome) == stated
    assert get_stated_verdict(made(), outcome) == verdict
    assert elsewhere.identity == made().identity


OUTCOME = Outcome("small", "", "full", "not reproduced", "", (), (), {}, {}, {}, "2026-11-01T00:00:00Z", 1.0)

CHECK = Path(__file__).resolve().parents[2] / ".ci/claim_order.py"


def test_a_commit_with_the_rules_and_the_outcome_of_a_claim_is_refused(tmp_path):
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True)

    def commit(**files: str) -> None:
        for name, text in files.items():
            file = (
                tmp_path / "baselines/claims" / {"claim": "small.toml", "outcome": "results/small/verdict.json"}[name]
            )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        git("add", ".")
        git("commit", "-m", "change")

    def check(since: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, CHECK, tmp_path, since], capture_output=True, text=True)

    git("init")
    commit(claim="notes = 'a'\nrules = [1]\n")
    commit(outcome="1")
    commit(claim="notes = 'b'\nrules = [1]\n", outcome="2")
    assert check("HEAD~2").returncode == 0
    commit(claim="notes = 'b'\nrules = [2]\n", outcome="3")
    refused = check("HEAD~3")
    assert refused.returncode == 1
    assert "small: its rules change together with its outcome" in refused.stdout
    assert "not checked" in check("v0").stdout
    commit(claim="notes = 'b'\nrules = [2]\n", outcome="4")
    git("rm", "-r", "baselines")
    git("commit", "-m", "take the claim out")
    assert check("HEAD~1").returncode == 0


ON = "optdigits/writers"
RULES = ("id_val", "last", "oracle")
RUN = {"recipe": "mlp", "on": ON, "steps": 8, "seeds": 2, "search": 3, "selection": "crafted_shift"}


def made_selection(run: dict | None = None, **changes) -> Claim:
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
    item = made_selection()
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
    run = made_selection(RUN | {"quick": {"search": 2}}).runs["network"]
    assert len(make_run_plan(run, tmp_path, True, None, "cpu").settings) == 2
    assert len(make_run_plan(run, tmp_path, False, None, "cpu").settings) == 3
    with pytest.raises(ValueError, match=r"quick\.search requires search"):
        made_selection({"recipe": "mlp", "on": ON, "quick": {"search": 2}})


def test_the_rule_and_the_number_of_settings_are_part_of_a_claims_identity():
    plain = {name: value for name, value in RUN.items() if name != "search"}
    assert (
        len({made_selection().identity, made_selection(RUN | {"search": 4}).identity, made_selection(plain).identity})
        == 3
    )
    turned = {"regret": {"sort": "difference", "left": "id_val", "right": "oracle"}}
    assert (
        made_selection(quantities=made_selection().model_dump()["quantities"] | turned).identity
        != made_selection().identity
    )


def test_a_rule_that_cannot_choose_is_refused(tmp_path):
    run = RUN | {"selection": "id_val"}
    quantity = {"sort": "score", "run": "network", "rule": "crafted_shift"}
    rules = [{"shape": "positive", "quantity": "x"}]
    with pytest.raises(
        BadRun, match="the selection rule crafted_shift cannot be applied: the run has no predictions for crafted_shift"
    ):
        reproduce_claim(made_selection(run, quantities={"x": quantity}, rules=rules), tmp_path)
    with pytest.raises(UnknownName, match="oracle"):
        reproduce_claim(made_selection(run, quantities={"x": quantity | {"rule": "orakle"}}, rules=rules), tmp_path)


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
    output = describe_quantity(made_selection(), made_selection().quantities["oracle"])
    assert output == "OOD score of mlp on optdigits/writers, selected among 3 settings by oracle"
    assert "by crafted_shift" in describe_quantity(made_selection(), made_selection().quantities["crafted"])


NAME = "xor-one-step"


@pytest.fixture
def rejudge(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with git's answers from `answers`: by command."""
    spec = importlib.util.spec_from_file_location("rejudge", ROOT / ".ci/rejudge.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.answers = {"status": "", "log": "abc", "show": (ROOT / f"baselines/claims/{NAME}.toml").read_text("utf-8")}
    monkeypatch.setattr(script, "run_git", lambda command, *_: script.answers[command])
    return script


def test_stored_predictions_give_the_recorded_outcome_with_the_record_of_its_runs(rejudge):
    recorded = read_recorded_outcome(load_claim(NAME))
    outcome = rejudge.judge_anew(NAME)
    assert recorded is not None
    for field in ("identity", "verdict", "premises", "rules", "runs", "quick"):
        assert getattr(outcome, field) == getattr(recorded, field), field


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ({"status": f" M {NAME}.toml"}, f"commit baselines/claims/{NAME}.toml first"),
        ({"show": "[runs.first]\nrecipe = 'mlp'\non = 'xor_clusters/eta10'\nsteps = 2\n"}, "its trained runs changed"),
    ],
)
def test_a_rule_that_is_not_committed_and_changed_runs_are_refused(rejudge, answers, complaint):
    rejudge.answers |= answers
    with pytest.raises(SystemExit, match=complaint):
        rejudge.judge_anew(NAME)


ON_DIAGNOSTICS = "modadd97/xi35"


def test_diagnostics_are_of_the_recorded_file_that_is_here_and_a_damaged_file_is_named(tmp_path):
    file = record_run(run_baseline("mlp", ON_DIAGNOSTICS, seeds=[0], steps=4, out=tmp_path / "run"), tmp_path)
    stored = file.with_name("diagnostics.json")
    assert read_diagnostics(ON_DIAGNOSTICS, tmp_path) == {}
    stated = {
        "file": digest_result(ON_DIAGNOSTICS, "mlp", tmp_path),
        "equal": 1.0,
        "seeds": {"0": {"dimension.two_nn": 2.5}},
    }
    stored.write_text(json.dumps({"mlp": stated, "cnn": stated}))
    assert read_diagnostics(ON_DIAGNOSTICS, tmp_path) == {"mlp": {0: {"dimension.two_nn": 2.5}}}
    stored.write_text(json.dumps({"mlp": 3}))
    with pytest.raises(BadRun, match=r"diagnostics\.json cannot be read as diagnostics"):
        read_diagnostics(ON_DIAGNOSTICS, tmp_path)
    stored.write_text(json.dumps({"mlp": stated}))
    file.write_bytes(file.read_bytes() + b" ")
    assert read_diagnostics(ON_DIAGNOSTICS, tmp_path) == {}


def test_a_seed_disagrees_with_the_others_on_average():
    answers = {0: np.array([1, 2, 3, 4]), 1: np.array([1, 2, 3, 0]), 2: np.array([0, 0, 3, 0])}
    expected = {0: (0.25 + 0.75) / 2, 1: (0.25 + 0.5) / 2, 2: (0.75 + 0.5) / 2}
    assert compute_mean_disagreement(answers) == pytest.approx(expected)


@pytest.fixture
def recorded(monkeypatch):
    """Eight baselines of seeds 0 and 1 that are the better the later, and what is known of their networks."""
    known: dict[str, dict[int, dict[str, float]]] = {}
    scores = {
        name: SimpleNamespace(seeds=(0, 1), better="higher", ood=SimpleNamespace(per_seed=(position, position + 0.5)))
        for position, name in enumerate("abcdefgh")
    }
    monkeypatch.setattr(measured, "read_recorded_scores", lambda benchmark: scores)
    monkeypatch.setattr(measured, "read_diagnostics", lambda benchmark: known)
    return known


def correlation(diagnostic: str) -> Any:
    quantity = DiagnosticCorrelation(sort="diagnostic_correlation", diagnostic=diagnostic, on=ON_DIAGNOSTICS)
    return Evidence(None, {}).diagnostic_correlation(quantity)


def test_a_diagnostic_is_held_against_ood_over_means_of_the_seeds_that_have_both(recorded):
    recorded |= {name: {1: {"x": -position}, 7: {"x": 1000.0}} for position, name in enumerate("abcdefg")}
    values, ood = pair_diagnostic_with_ood("x", ON_DIAGNOSTICS)
    assert values.tolist() == [0, -1, -2, -3, -4, -5, -6]
    assert ood.tolist() == [position + 0.5 for position in range(7)]
    result = correlation("x")
    assert result.value == -1.0
    assert "(7 of them)" in result.interval


def test_where_too_few_baselines_have_a_diagnostic_or_all_have_it_alike_the_reason_is_given(recorded):
    recorded |= {name: {0: {"x": 1.0, "y": 2.0}} for name in "abcdefgh"}
    assert correlation("x").why == "all baselines are alike on one side"
    del recorded["a"], recorded["b"]
    assert correlation("x").why.startswith("6 baselines have x: more than 6")
    with pytest.raises(UnknownName, match="no diagnostic of recorded baselines .* named 'z'"):
        correlation("z")
