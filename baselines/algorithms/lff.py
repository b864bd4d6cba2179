"""Learning from failure: rows with a large loss under an intentionally biased network are upweighted for a second one.

The biased network minimises the generalised cross-entropy (1 - p_y^q) / q, which amplifies what is easy; the debiased
one minimises mean W CE_D with W = CE_B / (CE_B + CE_D) (Nam et al., algorithm 1). As in their code,
both losses of a row are moving averages over the steps that drew it, each divided by the largest of its class.
Predictions are the debiased network's. Known trap avoided: the released generalised loss is q times the paper's.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, StepState
from ._pair import build_pair
from ._rows import read_entries, write_entries
from .gce import generalised_cross_entropy

KIND = "domain"
CITATION = (
    "Nam, Cha, Ahn, Lee and Shin, Learning from failure: training debiased classifier from biased classifier, "
    "NeurIPS 2020 (arXiv:2007.02561)"
)
SETTINGS: dict[str, Any] = {"q": 0.7, "ema": 0.7}
"""q: of the generalised cross-entropy, above 0. ema: how much of a row's average loss stays when it is drawn again."""
SEARCH: dict[str, Any] = {"q": ["choice", 0.5, 0.7, 0.9]}
LIMITS = {"q": "above 0"}


class Algorithm(BaseAlgorithm):
    remembers = True
    biased: Tensor
    debiased: Tensor

    def set_up(self) -> None:
        for name in ("biased", "debiased"):
            self.register_buffer(name, torch.zeros(self.about.replicas, len(self.about.data)))

    def assemble(self, build: Build) -> Any:
        """The debiased network, which predicts, and the biased one."""
        return build_pair(build)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        own, easy = (cross_entropy(member(*batch.inputs), batch.target) for member in (network.first, network.second))
        hard = self._relative(self.biased, easy, batch)
        weight = hard / (hard + self._relative(self.debiased, own, batch) + 1e-8)
        return average_over_batch(
            generalised_cross_entropy(easy, self.hyperparameters.on("q", easy)) + weight * own, batch
        )

    @torch.no_grad()
    def _relative(self, averages: Tensor, losses: Tensor, batch: Batch) -> Tensor:
        """Update the rows' averages (K, N) with losses (K, n); return them over the largest of their class, (K, n)."""
        ema = self.hyperparameters["ema"][:, None]
        before = read_entries(averages, batch.rows)
        now = torch.where(before == 0, losses, ema * before + (1 - ema) * losses)
        write_entries(averages, batch.rows, now)
        target = self.about.data.target[0].expand(len(averages), -1)
        most = averages.new_zeros(len(averages), self.about.outputs).scatter_reduce(1, target, averages, "amax")
        return now / most.gather(1, batch.target).clamp(min=torch.finfo(now.dtype).tiny)
