"""Group reweighting: ERM on batches with equally many rows of each environment.

    mean_e R_e,  R_e the mean loss of environment e

Idrissi, Arjovsky, Pezeshki and Lopez-Paz, CLeaR 2022 (RWG): groups are sampled equally often, rows within a
group uniformly. They found it to do as well as methods that are made for worst groups.
"""

from typing import Any

from torch import Tensor

from . import BaseAlgorithm, Batch, StepState
from ._environments import compute_environment_risks

KIND = "domain"
CITATION = (
    "Idrissi, Arjovsky, Pezeshki and Lopez-Paz, Simple data balancing achieves competitive worst-group-accuracy, "
    "CLeaR 2022 (arXiv:2110.14503)"
)
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"batch_size": 32}
"""batch_size: rows of each environment."""
SEARCH: dict[str, Any] = {"batch_size": ["choice", 8, 16, 32, 64]}


class Algorithm(BaseAlgorithm):
    by_environment = True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        return compute_environment_risks(network, batch).mean(1)
