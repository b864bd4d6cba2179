"""Progressive self-knowledge distillation: the label is mixed with the network's own prediction of the previous epoch.

    CE(p_t, (1 - a_t) y + a_t p_(t - 1)),  a_t = a t / T

Kim et al., ICCV 2021, section 3. The past answer of a row is the one that it got when it was last drawn, as in
the released code; until then it is its label. t is counted in steps, so a grows evenly instead of once an epoch.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._rows import read_entries, write_entries

KIND = "corrupted-label"
CITATION = (
    "Kim, Ji, Yoon and Hwang, Self-knowledge distillation with progressive refinement of targets, ICCV 2021 "
    "(arXiv:2006.12000)"
)
SETTINGS: dict[str, Any] = {"alpha": 0.8}
"""alpha: a, the past answer's share at the end of training."""
SEARCH: dict[str, Any] = {"alpha": ["choice", 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]}


class Algorithm(BaseAlgorithm):
    additive = True
    remembers = True
    past: Tensor

    def set_up(self) -> None:
        labels = F.one_hot(self.about.data.target, self.about.outputs).to(torch.get_default_dtype())
        self.register_buffer("past", labels.expand(self.about.replicas, -1, -1).clone())

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        logits = network(*batch.inputs)
        share = self.hyperparameters.on("alpha", logits) * (clock.step / clock.steps)
        label = F.one_hot(batch.target, logits.shape[-1]).to(logits.dtype)
        target = (1 - share) * label + share * read_entries(self.past, batch.rows)
        write_entries(self.past, batch.rows, logits.detach().softmax(-1))
        return average_over_batch(cross_entropy(logits, target), batch)
