"""Lion: the sign of an interpolation between the gradient and its moving average.

    c = beta1 m + (1 - beta1) g,   p <- p - lr (sign(c) + wd p),   m <- beta2 m + (1 - beta2) g

Chen et al., Symbolic Discovery of Optimization Algorithms, NeurIPS 2023 (arXiv:2302.06675), algorithm 2. Every entry
moves by lr, so a rate suits Lion that is 3 to 10 times smaller than AdamW's, with a weight decay as many times larger
(section 5).
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ..replicas.hyperparameters import Hyperparameters
from ..training.optimiser_step import broadcast_values
from ._averaged import AveragingOptimiser

SETTINGS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.99}


class Optimiser(AveragingOptimiser):
    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        super().__init__(parameters, rates, hyperparameters)
        dtype = self.parameters[0].dtype
        self.news = [(1 - self.per_replica(hyperparameters.exact(name))).to(dtype) for name in ("beta1", "beta2")]

    def direction(self, average: Tensor, gradient: Tensor) -> Tensor:
        at_once, momentum_share = (broadcast_values(news, gradient) for news in self.news)
        along = average.lerp(gradient, at_once).sign_()
        average.lerp_(gradient, momentum_share)
        return along
