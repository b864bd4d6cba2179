"""Co-teaching: two networks, each trained on the rows of a batch with the smallest loss under the other.

    R(t) = 1 - t_0 min(t / T, 1) is the share of a batch that is retained

Han et al., NeurIPS 2018, Algorithm 1, with T (10 of 200 epochs there) as a share of the steps, since in a budget of
steps the epochs of large data never end. t_0 ("forget") is the share of wrong labels, which the paper assumes known;
here it is a setting, the same for all data sets. The released code divides the mean over the retained rows by their
number once more, which makes the rate depend on the batch size; here the loss is their mean. The prediction is the
first network's.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import cross_entropy
from . import BaseAlgorithm, Batch, Build, StepState
from ._pair import Pair, build_pair
from ._rows import compute_selected_mean, select_smallest

KIND = "corrupted-label"
CITATION = (
    "Han, Yao, Yu, Niu, Xu, Hu, Tsang and Sugiyama, Co-teaching: robust training of deep neural networks with "
    "extremely noisy labels, NeurIPS 2018 (arXiv:1804.06872)"
)
SETTINGS: dict[str, Any] = {"forget": 0.2, "gradual_percent": 5.0}
"""forget: t_0, the share of each batch that is left out in the end. gradual_percent: T, of all steps."""
SEARCH: dict[str, Any] = {"forget": ["uniform", 0.05, 0.6], "gradual_percent": ["choice", 2.5, 5.0, 7.5]}


class Algorithm(BaseAlgorithm):
    def assemble(self, build: Build) -> Pair:
        return build_pair(build)

    def loss(self, network: Pair, batch: Batch, clock: StepState) -> Tensor:
        errors = [cross_entropy(branch(*batch.inputs), batch.target) for branch in (network.first, network.second)]
        masks = [select_smallest(error.detach(), self.remembered(clock, batch)) for error in errors]
        return compute_selected_mean(errors[0], masks[1], batch) + compute_selected_mean(errors[1], masks[0], batch)

    def remembered(self, clock: StepState, batch: Batch) -> Tensor:
        """How many rows of the batch are retained, at least one, (K,) int64."""
        counts = [max(1, int(share * batch.rows.shape[1])) for share in self.share(clock).tolist()]
        return torch.tensor(counts, device=batch.rows.device)

    def share(self, clock: StepState) -> Tensor:
        """R(t), (K,) float64."""
        done = 100 * clock.step / clock.steps
        settings = self.hyperparameters
        shares = [
            1 - forget * (min(1.0, done / gradual) if gradual else 1.0)
            for forget, gradual in zip(settings.exact("forget"), settings.exact("gradual_percent"), strict=True)
        ]
        return torch.tensor(shares, dtype=torch.float64)
