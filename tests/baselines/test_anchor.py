"""Anchor regression comes to the paper's estimator, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .numbers_in_environments import NUMBER, measured
from .toys import recipe, trained


def closed_form(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], group: np.ndarray[Any, Any], gamma: float) -> Any:
    """Least squares after (I - P) + sqrt(gamma) P, P the projection on environments, all centred (section 2.1)."""
    x, y = x - x.mean(0), y - y.mean()
    one_hot = (group[:, None] == np.unique(group)).astype(float)
    projection = one_hot @ np.linalg.solve(one_hot.T @ one_hot, one_hot.T)
    turn = np.eye(len(y)) - projection + np.sqrt(gamma) * projection
    return np.linalg.lstsq(turn @ x, turn @ y, rcond=None)[0]


@pytest.mark.parametrize(("penalty", "steps"), [(0.0, 500), (20.0, 2000)])
def test_a_linear_network_comes_to_the_closed_form(penalty: float, steps: int) -> None:
    rows = measured()
    x, group = rows.columns["x"].astype(float), rows.columns["group"]
    y = rows.columns["y"] / 10 + 3 * (group == "1")
    rows.columns["y"] = y
    settings = {"batch_size": 0, "lr": 0.3, "schedule": "cosine", "weight_decay": 0.0, "scaled": False}
    result: Any = trained(recipe("linear", steps, "anchor", penalty=penalty, **settings), NUMBER, rows)
    predicted = result.predict(rows.only("x")).prediction
    best = closed_form(x, y, group, 1 + penalty)
    assert predicted == pytest.approx((x - x.mean(0)) @ best + y.mean(), abs=0.02)
    other = closed_form(x, y, group, 21 - penalty)
    assert np.abs(predicted - ((x - x.mean(0)) @ other + y.mean())).max() > 0.1
