"""Gaps of invariance, held to a second computation and to a model whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import interventions
from farshift.splits.measures.invariance import list_sets, measure_broken_share, measure_gaps

FAMILY = {"environment": "f", "draws": 6, "sites": 2, "rows": 30, "on": [5, 6, 7], "shift": [2.0, 4.0]}
FAMILY |= {"scale": [1.0, 3.0], "hard": False}


def make_environment(seed: int, shift: float, rows: int = 4000):
    """x0 causes y with weight 2, and y causes x1, which is shifted."""
    noise = np.random.default_rng(seed).normal(size=(3, rows))
    y = 2 * noise[0] + noise[1]
    return np.column_stack([noise[0], y + shift + 0.1 * noise[2]]), y


def test_a_gap_is_the_excess_of_pooled_weights_over_an_environments_own():
    fitted = [make_environment(0, 0.0, 50), make_environment(1, 3.0, 80)]
    measured = make_environment(2, -2.0, 40)
    x, y = (np.concatenate([environment[side] for environment in fitted]) for side in (0, 1))

    def risk(design, target):
        weights, *_ = np.linalg.lstsq(np.c_[design, np.ones(len(design))], target, rcond=None)
        return np.mean((np.c_[measured[0], np.ones(40)] @ weights - measured[1]) ** 2)

    assert measure_gaps(fitted, [[0, 1]], [measured])[0, 0] == pytest.approx(risk(x, y) - risk(*measured))


def test_only_the_cause_stays_invariant_where_its_effect_is_shifted():
    train, test = [make_environment(0, 0.0), make_environment(1, 0.1)], [make_environment(2, 5.0)]
    gaps = dict(zip(["x0", "x1", "both"], measure_gaps(train, list_sets(2), test)[:, 0], strict=True))
    assert gaps["x0"] < 0.01 and gaps["x1"] > 1 and gaps["both"] > 1
    assert measure_broken_share(train, test, 0.2) == pytest.approx(2 / 3)
    assert measure_broken_share([*train, make_environment(3, 5.0)], test, 0.2) == 0


def test_a_family_draws_its_interventions_within_its_bounds():
    table = interventions.rows(seed="t", environments=[FAMILY])
    names = table["environment"].to_pylist()
    assert names[::30] == [f"f {number}" for number in range(1, 7)] and set(table["family"].to_pylist()) == {"f"}
    drawn = interventions._draw_interventions("t", FAMILY)
    assert all(len(set(entry["on"])) == 2 and set(entry["on"]) <= {5, 6, 7} for entry in drawn)
    assert all(2 <= entry["shift"] < 4 and 1 <= entry["scale"] < 3 for entry in drawn)
    assert len({tuple(entry["on"]) for entry in drawn}) > 1
    with pytest.raises(BadDefinition, match="sites = 4"):
        interventions.rows(seed="t", environments=[FAMILY | {"sites": 4}])
