"""SHOT: the features adapt to shifted inputs by information maximisation and pseudo-labels, with a frozen head.

1. The network is trained with label smoothing, for `source_percent` of the steps.
2. All but its head then descends on batches of shifted test rows alone, by

       mean H(p(x)) - H(mean p(x)) + pseudo CE(x, y^)

   y^ is the class whose centroid is nearest to a row's features by cosine: centroids are means of all shifted rows'
   features (with a 1 appended, at length 1), weighted by their probabilities, then once more by the classes so found.
   They are recomputed `relabels` times. Classes without rows have no centroid.

Liang, Hu and Feng, ICML 2020, equations 2 to 7. The paper adapts a bottleneck that it adds, with weight normalisation
in the head, and the layers below it at a tenth of the rate; networks here have none, and their features adapt at
`adaptive_lr`. Logarithms are of p + 1e-5 as in the released code; rates follow the recipe's schedule, in each stage.
The predicted rows are those that were learned from, and the adapted network predicts all rows, also those of the
training environments. Known trap: published settings were chosen with target labels.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..training.losses import average_over_batch, cross_entropy, label_smoothing_loss
from ..training.optimiser_step import exclude_parameters
from ..training.sampler import Order, gather_rows
from . import Batch, Batches, MakeOptimiserStep, OptimiserSteps, StepState
from ._head import read_head_shape
from ._plain import TwoStages, compute_shared_features
from ._rows import read_entries

KIND = "domain"
CITATION = (
    "Liang, Hu and Feng, Do we really need to access the source data? Source hypothesis transfer for unsupervised "
    "domain adaptation, ICML 2020 (arXiv:2002.08546)"
)
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {
    "source_percent": 50,
    "smoothing": 0.1,
    "adaptive_lr": 1e-4,
    "pseudo": 0.3,
    "relabels": 15,
}
"""source_percent: of the steps, on labelled rows. smoothing: of their labels. adaptive_lr: of the features' steps
afterwards. pseudo: the weight of pseudo-labels. relabels: how often they are found."""
SEARCH: dict[str, Any] = {"adaptive_lr": ["log10", -5, -3], "pseudo": ["choice", 0.0, 0.1, 0.3]}

LEAST = 1e-5


class Algorithm(TwoStages):
    first_stage = "source_percent"
    remembers = True
    pseudo: Tensor
    """The class of each shifted row, (K, M)."""

    def set_up(self) -> None:
        rows = len(self._inputs[0])
        self.register_buffer("pseudo", torch.zeros(self.about.replicas, rows, dtype=torch.int64))
        self._order: tuple[Tensor, Order] | None = None

    @property
    def _inputs(self) -> tuple[Tensor, ...]:
        assert self.about.data.unlabelled is not None
        return self.about.data.unlabelled

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        read_head_shape(network)
        features = exclude_parameters(network, network.head.parameters())  # type: ignore[union-attr]
        return {
            "main": optimiser_step(list(network.parameters()), "lr"),
            "features": optimiser_step(features, "adaptive_lr"),
        }

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        return average_over_batch(
            label_smoothing_loss(network(*batch.inputs), batch.target, self.hyperparameters["smoothing"]), batch
        )

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        if clock.stage == 0:
            return super().update(network, batches, clock, optimiser_steps)
        every = max(1, clock.steps // max(1, self.hyperparameters["relabels"]))
        if clock.step % every == 0:
            self._relabel(network)
        batch, _ = next(iter(batches()))
        return optimiser_steps["features"].step(lambda: self._adapting(network, batch.rows.shape[1], clock))

    def _adapting(self, network: Any, count: int, clock: StepState) -> Tensor:
        """The loss (K,) of the shifted rows of a step, as many as there are labelled ones in a batch."""
        if self._order is None or self._order[0] is not clock.keys:
            even = torch.ones(1, self.pseudo.shape[1], device=clock.keys.device)
            self._order = clock.keys, Order(even, clock.keys, "shifted")
        rows = self._order[1].draw(clock.step * count, count)
        logits = network(*(gather_rows(x, rows) for x in self._inputs))
        p = logits.softmax(-1)
        uncertain = -(p * (p + LEAST).log()).sum(-1).mean(1)
        overall = p.mean(1)
        diverse = -(overall * (overall + LEAST).log()).sum(-1)
        pseudo_loss = cross_entropy(logits, read_entries(self.pseudo, rows)).mean(1)
        return uncertain - diverse + self.hyperparameters["pseudo"] * pseudo_loss

    @torch.no_grad()
    def _relabel(self, network: Any) -> None:
        features = compute_shared_features(network, self._inputs, len(self.pseudo), self.rng)
        self.pseudo.copy_(assign_pseudo_labels(features, network.head(features).softmax(-1)))


def assign_pseudo_labels(features: Tensor, probabilities: Tensor) -> Tensor:
    """The class of the nearest centroid of rows (K, M, width) with probabilities (K, M, classes): (K, M)."""
    z = F.normalize(torch.cat([features, torch.ones_like(features[..., :1])], dim=-1), dim=-1)
    share, chosen = probabilities, probabilities.argmax(-1)
    for _ in range(2):
        there = F.one_hot(chosen, share.shape[-1]).sum(1) > 0
        centroids = share.transpose(1, 2) @ z / (1e-8 + share.sum(1)[..., None])
        alike = z @ F.normalize(centroids, dim=-1).transpose(1, 2)
        chosen = alike.masked_fill(~there[:, None], -torch.inf).argmax(-1)
        share = F.one_hot(chosen, share.shape[-1]).to(z.dtype)
    return chosen
