"""Diagnostics of recorded baselines, as claims hold them against OOD scores: only those of the results that are here."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from farshift.baselines.reproduce import diagnostic_values
from farshift.baselines.reproduce.diagnostic_values import (
    compute_mean_disagreement,
    pair_diagnostic_with_ood,
    read_diagnostics,
)
from farshift.baselines.reproduce.measured import Evidence
from farshift.baselines.running.results import digest_result, record_run
from farshift.baselines.running.sweep import run_baseline
from farshift.benchmarks.claims.claim import DiagnosticCorrelation
from farshift.core.errors import BadRun, UnknownName

ON = "modadd97/xi35"


def test_diagnostics_are_of_the_recorded_file_that_is_here_and_a_damaged_file_is_named(tmp_path):
    file = record_run(run_baseline("mlp", ON, seeds=[0], steps=4, out=tmp_path / "run"), tmp_path)
    stored = file.with_name("diagnostics.json")
    assert read_diagnostics(ON, tmp_path) == {}
    stated = {"file": digest_result(ON, "mlp", tmp_path), "equal": 1.0, "seeds": {"0": {"dimension.two_nn": 2.5}}}
    stored.write_text(json.dumps({"mlp": stated, "cnn": stated}))
    assert read_diagnostics(ON, tmp_path) == {"mlp": {0: {"dimension.two_nn": 2.5}}}
    stored.write_text(json.dumps({"mlp": 3}))
    with pytest.raises(BadRun, match=r"diagnostics\.json cannot be read as diagnostics"):
        read_diagnostics(ON, tmp_path)
    stored.write_text(json.dumps({"mlp": stated}))
    file.write_bytes(file.read_bytes() + b" ")
    assert read_diagnostics(ON, tmp_path) == {}


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
    monkeypatch.setattr(diagnostic_values, "read_recorded_scores", lambda benchmark, home: scores)
    monkeypatch.setattr(diagnostic_values, "read_diagnostics", lambda benchmark, home: known)
    return known


def correlation(diagnostic: str) -> Any:
    quantity = DiagnosticCorrelation(sort="diagnostic_correlation", diagnostic=diagnostic, on=ON)
    return Evidence(None, {}).diagnostic_correlation(quantity)


def test_a_diagnostic_is_held_against_ood_over_means_of_the_seeds_that_have_both(recorded):
    recorded |= {name: {1: {"x": -position}, 7: {"x": 1000.0}} for position, name in enumerate("abcdefg")}
    values, ood = pair_diagnostic_with_ood("x", ON)
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
