"""People with exact counterfactuals: against the model's own closed forms."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import pyarrow as pa
import pytest
from farshift import Answers
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from farshift.core.errors import BadDefinition
from farshift.loaders.generators.evolving_people import rows

TASK = Task("classification", ("x", "attribute"), "label", 2)
FLIPS = find_metric("counterfactual_flip_rate", options={"person": "person"})


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return rows(seed="s", periods=4, people=10_000, effect=1.0)


def columns(table: pa.Table) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    x = np.array(table["x"].combine_chunks().flatten()).reshape(-1, 2)
    return x, {name: np.array(table[name]) for name in ("attribute", "label", "person", "period", "form")}


def flip_rate(prediction: np.ndarray, table: pa.Table) -> float:
    _, own = columns(table)
    answers = Answers.all_given(prediction.astype(np.int64))
    return FLIPS.value(answers, own["label"], TASK, {"person": own["person"]})


def test_a_counterfactual_differs_in_the_attribute_and_in_what_it_causes(table: pa.Table) -> None:
    x, own = columns(table)
    half = len(x) // 2
    assert (own["attribute"][:half] == 1 - own["attribute"][half:]).all()
    assert x[half:, 0] - x[:half, 0] == pytest.approx(1.0 - 2.0 * own["attribute"][:half], abs=1e-6)
    for same in (x[:, 1], own["label"], own["person"], own["period"]):
        assert (same[:half] == same[half:]).all()


def test_a_model_without_the_attribute_flips_as_often_as_the_closed_form_says(table: pa.Table) -> None:
    x, own = columns(table)
    expected = erf(1 / sqrt(2)) / 2  # P(-1 < u_1 <= 0)
    assert flip_rate(x[:, 0] > 0, table) == pytest.approx(expected, abs=0.01)
    assert flip_rate(x[:, 0] - own["attribute"] > 1e-6, table) < 1e-3
    assert flip_rate(own["attribute"], table) == 1


def test_the_rule_turns_from_one_input_to_the_other(table: pa.Table) -> None:
    x, own = columns(table)
    causes = np.stack([x[:, 0] - own["attribute"], x[:, 1]], axis=1)
    right = [
        [
            np.mean((causes[own["period"] == period, which] > 0) == own["label"][own["period"] == period])
            for which in (0, 1)
        ]
        for period in range(4)
    ]
    assert [pair[0] for pair in right] == sorted((pair[0] for pair in right), reverse=True)
    # The angle between u and u + e / 4 is the share of disagreement.
    assert right[0][0] == pytest.approx(1 - np.arctan(0.25) / np.pi, abs=0.01)
    assert right[0][1] == pytest.approx(0.5, abs=0.02)
    assert right[3][1] == pytest.approx(1 - np.arctan(0.25) / np.pi, abs=0.01)


def test_one_period_is_refused() -> None:
    with pytest.raises(BadDefinition, match="periods = 1"):
        rows(seed="s", periods=1, people=2, effect=1.0)
