"""Claims are judged anew from stored predictions, where only their rules or premises have changed."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from farshift.benchmarks.claims.claim import load_claim
from farshift.benchmarks.claims.outcome import read_recorded_outcome
from support import ROOT

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
