"""BBSE's released code: the ratios of classes' frequencies from predictions."""

import sys
from importlib import import_module
from types import ModuleType
from unittest.mock import patch

from ..make import Made
from ..problems.values import predictions
from ..reference import Numbers

REPOSITORY = "zackchase/label_shift"
COMMIT = "0e27d0a1b84135fcf4962d1659b47b86dbe2d6e1"


def bbse() -> Numbers:
    """A package that it imports, and this does not use, is left out."""
    absent = ModuleType("mxnet")
    absent.nd = None  # type: ignore[attr-defined]
    with patch.dict(sys.modules, {"mxnet": absent}):
        result = import_module("labelshift")
    predicted, labels, shifted = (item.numpy() for item in predictions())
    return {"ratios": result.estimate_labelshift_ratio(labels, predicted, shifted, 3)[:, 0].tolist()}


MADE = {
    "bbse": Made(
        bbse,
        "labelshift.py: estimate_labelshift_ratio",
        {},
        "estimates",
        remark="the ratios; what follows is weighted training",
    )
}
