"""Maximum classifier discrepancy: two heads maximise their disagreement on shifted rows, and the features minimise it.

Two heads c_1, c_2 on one feature extractor g. Each step takes, on the same rows,

    A   g, c_1, c_2:  min  CE_S(c_1) + CE_S(c_2)
    B   c_1, c_2:     min  CE_S(c_1) + CE_S(c_2) - d_T
    C   g:            min  d_T, `generator_steps` times
    d_T = mean over rows of T and classes of |p_1 - p_2|

S are a batch's labelled rows, T as many inputs of the shifted test rows, without labels. The prediction is that of the
sum of the heads' logits. Saito, Watanabe, Ushiku and Harada, CVPR 2018, as in the released code, where the three have
one rate and separate optimisers.
"""

from typing import Any

from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from ..training.optimiser_step import exclude_parameters, step_all
from . import BaseAlgorithm, Batch, Batches, Build, MakeOptimiserStep, OptimiserSteps, StepState
from ._shifted import get_shifted_inputs

KIND = "domain"
CITATION = (
    "Saito, Watanabe, Ushiku and Harada, Maximum classifier discrepancy for unsupervised domain adaptation, CVPR 2018 "
    "(arXiv:1712.02560)"
)
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {"generator_steps": 4}
"""generator_steps: n of the paper, 2 to 4; 4 is the released code's default."""
SEARCH: dict[str, Any] = {"generator_steps": ["choice", 2, 3, 4]}
LIMITS = {"generator_steps": "at least 1"}


def compute_discrepancy(first: Tensor, second: Tensor) -> Tensor:
    """Of two heads' logits (K, n, classes): (K,)."""
    return (first.softmax(-1) - second.softmax(-1)).abs().mean((1, 2))


class Algorithm(BaseAlgorithm):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        network.second = build("second").head
        return network

    def optimiser_steps(self, network: Any, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        heads = [*network.head.parameters(), *network.second.parameters()]
        return {"main": optimiser_step(exclude_parameters(network, heads), "lr"), "heads": optimiser_step(heads, "lr")}

    def _logits(self, network: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        features = network.encode(network.embed(*inputs))
        return network.head(features), network.second(features)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        """The heads' risks, (K,)."""
        first, second = self._logits(network, batch.inputs)
        return average_over_batch(cross_entropy(first, batch.target) + cross_entropy(second, batch.target), batch)

    def disagreement(self, network: Any, batch: Batch) -> Tensor:
        """d_T, (K,)."""
        return compute_discrepancy(*self._logits(network, get_shifted_inputs(batch)))

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        ((batch, _),) = batches()
        losses = step_all(optimiser_steps.values(), lambda: self.loss(network, batch, clock))
        optimiser_steps["heads"].step(lambda: self.loss(network, batch, clock) - self.disagreement(network, batch))
        for _ in range(self.hyperparameters["generator_steps"]):
            optimiser_steps["main"].step(lambda: self.disagreement(network, batch))
        return losses

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        first, second = self._logits(network, inputs)
        return first + second
