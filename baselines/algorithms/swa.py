"""Stochastic weight averaging: the mean of the weights over the last part of training.

theta_SWA <- (n theta_SWA + theta) / (n + 1) every `every` steps of the last part of training (Izmailov et al.,
algorithm 1), under any schedule of the learning rate; at the end the statistics of batch normalisation are recomputed
over the training rows (section 3.2). With every = 1 the average is dense, as Cha et al. (SWAD, NeurIPS 2021,
arXiv:2102.08604) found better under domain shift; their choice of the averaged steps by validation losses is not done
here. Known trap: without recomputed statistics the average predicts with those of the last weights.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from . import Build, Data, EmpiricalRisk, StepState
from ._norms import recompute_running_moments
from ._plain import split_steps
from ._weights import RunningMean

KIND = "any"
CITATION = (
    "Izmailov, Podoprikhin, Garipov, Vetrov and Wilson, Averaging weights leads to wider optima and better "
    "generalization, UAI 2018 (arXiv:1803.05407)"
)
TASKS = ("classification", "sequence", "regression")
SETTINGS: dict[str, Any] = {"start_percent": 75, "every": 1}
"""start_percent: of the steps, after which weights are averaged. every: steps from one of them to the next."""
SEARCH: dict[str, Any] = {"start_percent": ["choice", 50, 75, 90]}


class Algorithm(EmpiricalRisk):
    def set_up(self) -> None:
        self.start = split_steps(self.about.steps, self.hyperparameters["start_percent"], "swa")[0]

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        self.mean = RunningMean(list(network.parameters())).to(self.hyperparameters["lr"])
        return network

    def after(self, network: Any, clock: StepState) -> None:
        past = clock.total + 1 - self.start
        if past > 0 and past % self.hyperparameters["every"] == 0:
            self.mean.average(list(network.parameters()))

    def finish(self, network: Any, data: Data, answer: Callable[..., Tensor]) -> None:
        self.mean.put(list(network.parameters()))
        recompute_running_moments(network, data)
