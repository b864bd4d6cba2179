"""Robustness by covariate shift adaptation (Schneider et al., NeurIPS 2020): the toy's pictures through its batch
normalisation."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import torch

from .. import pictures, toy
from ..make import Made
from ..reference import Numbers

REPOSITORY = "bethgelab/robustness"
COMMIT = "0ef82b178e3526f63d8017dc870072d611d883e9"


def adapted(prior: float) -> Callable[[], Numbers]:
    """prior: N, in rows; there it is the training moments' share, of batches of one size."""

    def call() -> Numbers:
        package = ModuleType("robusta")  # its own __init__ imports data sets of pictures
        package.__path__ = [str(Path(sys.path[0]) / "robusta")]
        with patch.dict(sys.modules, {"robusta": package}):
            bn = import_module("robusta.batchnorm.bn")
        network = pictures.plain()
        parameters = list(network.parameters())
        model = bn.adapt_bayesian(network, prior / (prior + toy.ROWS)).double()
        with torch.no_grad():
            answers = [toy.flat([model(batch).log_softmax(-1)]) for batch in pictures.batches()]
        return {"answers": answers, "parameters": [toy.flat(parameters)] * len(answers)}

    return call


CODE = "robusta/batchnorm/bn.py: BayesianBatchNorm"
MADE = {
    "batch_norm_adaptation": Made(adapted(0.0), CODE, {"prior": 0.0}, "adapting"),
    "batch_norm_adaptation.prior": Made(adapted(10.0), CODE, {"prior": 10.0}, "adapting"),
}
