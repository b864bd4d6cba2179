"""Facts of linear oracles in claims are those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.baselines.reproduce.facts import compute_fact


def test_oracles_of_linear_models_are_those_of_scikit_learn():
    import farshift as fs
    from sklearn.linear_model import LinearRegression

    split, chosen = "interventions/cut_off", [0, 1, 2, 3]
    train, requested = (fs.load(split, item) for item in ("train", "ood_test"))
    model = LinearRegression().fit(train.numpy()["inputs"][:, chosen], train.true_labels())
    expected = np.sqrt(
        np.square(model.predict(requested.numpy()["inputs"][:, chosen]) - requested.true_labels()).mean()
    )
    given = {"fit": "train", "part": "ood_test", "field": "inputs"}
    assert compute_fact("least_squares_error", split, given | {"inputs": chosen}) == pytest.approx(expected)
    assert compute_fact("least_squares_error", split, given | {"inputs": []}) != pytest.approx(expected, abs=0.01)
    both = compute_fact("least_squares_error", split, {**given, "part": "train", "inputs": []})
    everything = LinearRegression().fit(train.numpy()["inputs"], train.true_labels())
    inside = np.sqrt(np.square(everything.predict(train.numpy()["inputs"]) - train.true_labels()).mean())
    assert both == pytest.approx(inside, rel=0.01)
    assert both > inside


def test_an_oracle_tells_cows_from_camels_where_the_background_is_shuffled():
    requested = {"fit": "ood_test", "part": "ood_test", "field": "inputs", "inputs": []}
    assert compute_fact("logistic_accuracy", "linear_unit_test_2s/shuffled", requested) > 0.95
