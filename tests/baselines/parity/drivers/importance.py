"""Importance weighting by a classifier of source and target (Bickel, Brückner and Scheffer, ICML 2007) in a package of
methods for domain adaptation, with scikit-learn's logistic regression of standardised inputs."""

import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from .. import toy
from ..make import Made
from ..plain import taken
from ..problems.steps import shifted_inputs as shifted
from ..reference import Numbers

REPOSITORY = "adapt-python/adapt"
COMMIT = "fd67cb7c13d0dd743f272710489a68bde2cb5e75"
STRENGTH = 0.3


def weighted() -> Numbers:
    given: dict[str, Any] = {
        "np": np, "inspect": inspect, "check_array": check_array, "BaseEstimator": BaseEstimator,
        "EPS": np.finfo(float).eps, "BaseAdaptEstimator": object, "make_insert_doc": lambda: lambda kind: kind,
        "set_random_seed": np.random.seed, "check_estimator": lambda classifier, **_: classifier,
    }  # fmt: skip
    kind = taken("adapt/instance_based/_iwc.py", "IWC", **given)["IWC"]
    built = kind.__new__(kind)
    regression = LogisticRegression(C=STRENGTH, solver="newton-cholesky", tol=1e-14, max_iter=1000)
    built.classifier, built.cl_params, built.random_state = make_pipeline(StandardScaler(), regression), None, 0
    weights = built.fit_weights(toy.inputs().numpy(), shifted().numpy())
    return {"weights": (weights / weights.mean()).tolist()}


MADE = {
    "importance_weighting": Made(
        weighted,
        "adapt/instance_based/_iwc.py: IWC",
        {"strength": STRENGTH},
        "importance",
        within=1e-8,
        remark="a package's, with a logistic regression of standardised inputs; weights are scaled to 1 on average",
    )
}
