"""Meta-learning for domain generalisation: a step that lowers the risk of some environments should lower that of the
others.

    min  F(theta) + beta G(theta - alpha grad F(theta))

F is the risk on meta-training environments, G on the meta-test ones, drawn anew each step. Li et al., AAAI 2018,
algorithm 1. Traps of DomainBed's code that are avoided: its inner step is a fresh Adam's, whose first step is the
gradient's sign at the outer learning rate; and it drops the second derivatives (here only with `first_order`). One
environment is held out each step; DomainBed holds out two.
"""

from typing import Any

from torch import Tensor
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from ...core.errors import ModelError
from ..replicas.rng import draw_permutations
from ..training.losses import average_over_batch, compute_gradients, compute_task_loss
from . import BaseAlgorithm, Batch, StepState
from ._environments import select_environments

KIND = "domain"
CITATION = "Li et al., Learning to generalize: meta-learning for domain generalization, AAAI 2018 (arXiv:1710.03463)"
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "meta_weight": 1.0,
    "inner_lr": 5e-4,
    "meta_test": 1,
    "first_order": False,
    "batch_size": 32,
}
"""meta_weight: beta. inner_lr: alpha, the paper's. meta_test: how many environments are held out each step.
first_order: whether grad F is a constant where G is differentiated."""
SEARCH: dict[str, Any] = {"meta_weight": ["log10", -1, 1]}


class Algorithm(BaseAlgorithm):
    by_environment = True

    def set_up(self) -> None:
        meta_test, most = self.hyperparameters["meta_test"], self.about.environments - 1
        if not 1 <= meta_test <= most:
            raise ModelError(f"setting meta_test = {meta_test}: with {most + 1} training environments, use 1 to {most}")

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        order = draw_permutations(clock.draw("split"), batch.environments)
        test_count = self.hyperparameters["meta_test"]
        test, train = (
            select_environments(batch, order[:, :test_count]),
            select_environments(batch, order[:, test_count:]),
        )
        parameters = dict(network.named_parameters())
        with sdpa_kernel(SDPBackend.MATH):  # the fused kernels of attention have no second derivative
            risk = average_over_batch(compute_task_loss(network(*train.inputs), train.target), train)
            slopes = compute_gradients(risk, list(parameters.values()), create_graph=True)
            if self.hyperparameters["first_order"]:
                slopes = tuple(slope.detach() for slope in slopes)
            moved = {
                name: parameter - self.hyperparameters.on("inner_lr", parameter) * slope
                for (name, parameter), slope in zip(parameters.items(), slopes, strict=True)
            }
            logits = functional_call(network, moved, test.inputs)
        return risk + self.hyperparameters["meta_weight"] * average_over_batch(
            compute_task_loss(logits, test.target), test
        )
