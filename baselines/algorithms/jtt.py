"""Just train twice: rows that a first model misclassifies are upweighted for a second one.

Stage 1 trains a model by empirical risk for a few epochs; E = {i : argmax f1(x_i) != y_i}. Stage 2 trains a fresh one
on lambda_up sum_{i in E} l_i + sum_{i not in E} l_i (Liu et al., algorithm 1), each row of E being taken lambda_up
times, as in the code of Idrissi et al. (CLeaR 2022); in the authors' own it is taken once more, lambda_up + 1 times in
all. Both stages come out of one budget of steps. Known trap: the published numbers choose the length of stage 1 and
lambda_up by worst-group accuracy on validation rows, which needs group labels; here only the protocol chooses.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from . import Data, EmpiricalRisk
from ._plain import TwoStages

KIND = "domain"
CITATION = (
    "Liu, Haghgoo, Chen, Raghunathan, Koh, Sagawa, Liang and Finn, Just train twice: improving group robustness "
    "without training group information, ICML 2021 (arXiv:2107.09044)"
)
SETTINGS: dict[str, Any] = {"first_percent": 20, "upweight": 20}
"""first_percent: of the steps, spent in stage 1. upweight: lambda_up, how often a row of the error set is taken."""
SEARCH: dict[str, Any] = {"first_percent": ["choice", 2, 10, 20], "upweight": ["choice", 5, 20, 50, 100]}


class Algorithm(TwoStages, EmpiricalRisk):
    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        wrong = answer(*data.inputs).argmax(-1) != data.target
        weight = data.weight * torch.where(wrong, self.hyperparameters["upweight"], 1)
        return replace(data, weight=weight), True
