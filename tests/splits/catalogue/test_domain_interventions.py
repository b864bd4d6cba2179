"""The linear model: what an intervention changes, and what it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import interventions

PLAIN: dict[str, Any] = {"rows": 4000, "on": [], "shift": 0.0, "scale": 1.0, "hard": False}
ENVIRONMENTS = [
    PLAIN | {"environment": "none"},
    PLAIN | {"environment": "cause", "on": [2], "shift": 3.0, "scale": 2.0},
    PLAIN | {"environment": "effects", "on": [5, 6, 7, 8], "hard": True},
]
TABLE = interventions.rows(seed="t", environments=ENVIRONMENTS)
X, Y = np.array(TABLE["inputs"].to_pylist(), dtype=np.float64), TABLE["target"].to_numpy()
NAMES = np.array(TABLE["environment"].to_pylist())
WEIGHTS = interventions.draw_weights("t")


def fitted(inputs, target):
    """Least squares with an intercept: the weights, and the variance that is left."""
    columns = np.column_stack([inputs, np.ones(len(inputs))])
    result, *_ = np.linalg.lstsq(columns, target, rcond=None)
    return result[:-1], float(np.var(target - columns @ result))


@pytest.mark.parametrize("name", ["none", "cause", "effects"])
def test_the_regression_on_the_causes_is_the_model_in_every_environment(name):
    result, left = fitted(X[name == NAMES][:, :4], Y[name == NAMES])
    assert np.allclose(result, WEIGHTS[:4, 4], atol=0.1)
    assert left == pytest.approx(1, abs=0.08)


def test_the_regression_on_all_is_better_where_it_was_fitted_and_worse_where_effects_are_cut_off():
    columns = np.column_stack([X, np.ones(len(X))])
    plain = NAMES == "none"
    result, *_ = np.linalg.lstsq(columns[plain], Y[plain], rcond=None)
    errors = {name: np.mean((Y - columns @ result)[name == NAMES] ** 2) for name in ("none", "effects")}
    assert errors["none"] < 0.6 < 1.5 < errors["effects"]


def test_a_soft_intervention_moves_its_variable_and_those_after_it_alone():
    moved = X[NAMES == "cause"].mean(axis=0) - X[NAMES == "none"].mean(axis=0)
    assert abs(moved[0]) < 0.15
    assert moved[1] == pytest.approx(3, abs=0.25)
    total = np.linalg.inv(np.eye(9) - WEIGHTS)[1] * 3  # of a shift of X2 by 3 on all nine
    assert np.allclose(moved, np.delete(total, 4), atol=0.6)


def test_a_hard_intervention_cuts_effects_from_the_target():
    effects = X[NAMES == "effects"][:, 4:]
    assert max(abs(np.corrcoef(column, Y[NAMES == "effects"])[0, 1]) for column in effects.T) < 0.06
    assert min(np.abs(WEIGHTS[4, 5:])) >= 0.5


def test_an_intervention_on_an_input_that_there_is_not_is_refused():
    with pytest.raises(BadDefinition, match="`on` must have numbers of inputs, 1 to 8"):
        interventions.rows(seed="t", environments=[PLAIN | {"environment": "wrong", "on": [9]}])
