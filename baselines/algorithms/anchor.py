"""Anchor regression: the mean error of each environment is penalised.

    mean_e R_e + weight x mean_e (mean over e of the errors)^2

The paper's estimator with environments as anchors, onto which the errors are projected as their mean in each
environment; its gamma is 1 + weight. 0 is least squares, and the larger the weight, the larger the shifts of means,
along those seen between environments, under which the error is least at worst (theorem 1). For another model than a
linear one it is the same objective, and has no such guarantee.
"""

from typing import Any

from torch import Tensor

from ..training.losses import average_over_batch, compute_task_loss, group_by_environment
from . import Batch, StepState
from ._penalised import PenalisedRisk

KIND = "domain"
CITATION = (
    "Rothenhäusler, Meinshausen, Bühlmann and Peters, Anchor regression: heterogeneous data meet causality, "
    "JRSS B 2021 (arXiv:1801.06229)"
)
TASKS = ("regression",)
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"penalty": 10.0, "batch_size": 32}
"""penalty: gamma - 1; how large, the paper leaves to how far the test may shift."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -1, 3]}


class Algorithm(PenalisedRisk):
    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        outputs = network(*batch.inputs)
        errors = group_by_environment(outputs[..., 0] - batch.target, batch).mean(-1)
        return average_over_batch(compute_task_loss(outputs, batch.target), batch), errors.square().mean(1)
