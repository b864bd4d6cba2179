"""The rules of claims say what they should of a value and its interval: holds, fails, or open between."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from farshift.baselines.reproduce.measured import Evidence, combine_values
from farshift.baselines.reproduce.reproduce import combine_verdicts, judge_rule
from farshift.benchmarks.claims.claim import Claim, Score
from farshift.benchmarks.claims.outcome import Measurement, Outcome, RuleVerdict, get_stated_verdict, make_exact

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


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.5, 0.7, "reproduced"), (0.1, 0.3, "not reproduced"), (0.3, 0.6, "inconclusive"), (0.4, 0.6, "reproduced")],
)
def test_a_rule_holds_where_the_whole_interval_is_on_its_side(low, high, verdict):
    at = Measurement((low + high) / 2, low, high)
    assert judged({"shape": "at_least", "quantity": "x", "limit": 0.4}, x=at) == verdict
    turned = Measurement(-at.value, -high, -low)
    assert judged({"shape": "at_most", "quantity": "x", "limit": -0.4}, x=turned) == verdict
    shifted = Measurement(at.value - 0.4, low - 0.4, high - 0.4)
    assert judged({"shape": "at_least", "quantity": "x", "limit": 0.0}, x=shifted) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.005, 0.015, "reproduced"),
        (0.1, 0.2, "not reproduced"),
        (0.0, 0.5, "inconclusive"),
        (-0.2, 0.0, "inconclusive"),
    ],
)
def test_a_value_is_within_reach_of_the_published_one_where_its_whole_interval_is(low, high, verdict):
    rule = {"shape": "within", "quantity": "x", "published": "test", "by": 0.02}
    assert judged(rule, x=Measurement((low + high) / 2, low, high)) == verdict


def test_zero_is_not_positive():
    assert judged({"shape": "positive", "quantity": "x"}, x=Measurement(0.1, 0.0, 0.2)) == "inconclusive"
    assert judged({"shape": "positive", "quantity": "x"}, x=make_exact(0.0)) == "not reproduced"


def test_a_direction_is_judged_by_the_value_alone():
    wide = Measurement(0.1, -1.0, 1.0)
    assert judged({"shape": "positive", "quantity": "x"}, x=wide) == "inconclusive"
    assert judged({"shape": "positive", "quantity": "x"}, direction=True, x=wide) == "reproduced"


def test_scores_are_in_order_where_their_difference_is_clear():
    rule = {"shape": "order", "quantities": ["x", "y"]}
    assert judged(rule, x=Measurement(0.5, 0.4, 0.6), y=Measurement(0.2, 0.1, 0.3)) == "reproduced"
    assert judged(rule, x=Measurement(0.5, 0.4, 0.6), y=Measurement(0.45, 0.3, 0.6)) == "inconclusive"
    assert judged(rule | {"by": 0.6}, x=Measurement(0.5, 0.4, 0.6), y=Measurement(0.2, 0.1, 0.3)) == "not reproduced"


def test_what_is_not_defined_is_inconclusive():
    assert judged({"shape": "positive", "quantity": "x"}, x=Measurement(0.0, why="one seed")) == "inconclusive"


def test_the_interval_of_a_sum_is_that_of_independent_parts():
    x, y = Measurement(0.5, 0.4, 0.7), Measurement(0.2, 0.1, 0.25)
    result = combine_values([x, y], [1, -1])
    assert result.value == pytest.approx(0.3)
    assert result.low == pytest.approx(0.3 - (0.1**2 + 0.05**2) ** 0.5)
    assert result.high == pytest.approx(0.3 + (0.2**2 + 0.1**2) ** 0.5)


def test_a_claim_holds_with_all_its_rules_and_says_nothing_without_its_premise():
    def said(verdict):
        return judge_of(verdict)

    holds, fails, unclear = (said(item) for item in ("reproduced", "not reproduced", "inconclusive"))
    assert combine_verdicts([], [holds, holds], "seen")[0] == "reproduced"
    assert combine_verdicts([], [holds, unclear], "seen")[0] == "inconclusive"
    assert combine_verdicts([], [unclear, fails], "seen")[0] == "not reproduced"
    verdict, reason = combine_verdicts([fails], [holds], "seen")
    assert (verdict, reason) == ("inconclusive", "the premise is not met: x: y")
    verdict, reason = combine_verdicts([], [holds], "from memory")
    assert verdict == "comparison"
    assert "by the rule reproduced" in reason


def judge_of(verdict: str):
    return RuleVerdict("x", verdict, "y")


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
