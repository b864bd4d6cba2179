"""Anchor regression (Rothenhäusler et al., JRSS B 2021) of a package of estimators with instruments, whose least squares
are those of scikit-learn: the anchors are environments, but for the first, since the package centres them."""

from importlib import import_module
from typing import Any

import torch.nn.functional as F
from sklearn.linear_model import LinearRegression

from .. import toy
from ..make import Made
from ..plain import on_cpu
from ..problems.predictions import inputs, numbers
from ..reference import Numbers

REPOSITORY = "mlondschien/ivmodels"
COMMIT = "43d3b02036ca0dc679bba91b8d202c2b82270e25"
PENALTY = 4.0


class Least:
    """Least squares with an offset, by the calls that the package makes."""

    def __init__(self, fit_intercept: bool, **_: Any) -> None:
        self.fit_intercept = fit_intercept

    def fit(self, x: Any, y: Any) -> None:
        built = LinearRegression().fit(x, y)
        self.coef_, self.intercept_ = built.coef_, built.intercept_


def anchored() -> Numbers:
    plain = {"njit": lambda *_, **__: lambda function: function, "prange": range}
    with on_cpu(glum={"GeneralizedLinearRegressor": Least}, numba=plain):
        built = import_module("ivmodels.models.anchor_regression").AnchorRegression(gamma=1 + PENALTY)
        built.fit(inputs().numpy(), numbers().numpy(), F.one_hot(toy.groups())[:, 1:].double().numpy())
    return {"coefficients": [*built.coef_.tolist(), float(built.intercept_)]}


MADE = {
    "anchor": Made(
        anchored,
        "ivmodels/models/anchor_regression.py: AnchorRegression",
        {"penalty": PENALTY},
        "least",
        remark="the authors released R; this is a Python package's, at the minimum of our objective",
    )
}
