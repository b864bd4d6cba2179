"""Entity debiasing: a second model predicts the label from entities alone, and is left out in prediction.

    min  CE(y; (1 - a) f(x) + a g(entities)) + b CE(y; g(entities));   prediction: f(x)

Zhu et al., SIGIR 2022, with logits of any number of classes in place of one. Entities are a row's categories (people,
places, shops): g is a perceptron on the sum of their vectors. While training, each entity that g is given is masked or
dropped at random.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..layers.embedding import Embedding
from ..replicas.rng import draw_uniform
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, StepState
from ._perceptron import Perceptron

KIND = "domain"
CITATION = (
    "Zhu et al., Generalizing to the future: mitigating entity bias in fake news detection, SIGIR 2022 "
    "(arXiv:2204.09484)"
)
SETTINGS: dict[str, Any] = {
    "entity_share": 0.1,
    "entity_weight": 0.2,
    "masked": 0.1,
    "dropped": 0.1,
    "entity_width": 64,
    "entities": [],
    "lr": 9e-4,
}
"""entity_share: a. entity_weight: b. masked and dropped: chances of each entity. entity_width: of g's vectors and its
hidden layer. entities: places, among the task's categorical inputs, of those that are entities; none for all. lr: the
paper's for its recurrent network."""
SEARCH: dict[str, Any] = {"entity_share": ["choice", 0.05, 0.1, 0.2, 0.3], "entity_weight": ["choice", 0.1, 0.2, 0.5]}


class Entities(nn.Module):
    """Ids of several fields, (K, n, fields), to logits (K, n, classes)."""

    starts: Tensor
    masks: Tensor

    def __init__(self, values: Sequence[int], width: int, classes: int) -> None:
        """values: how many ids each field has; the next one means that the entity is masked."""
        super().__init__()
        self.table = Embedding(sum(values) + len(values), width)
        self.reader = Perceptron([width, width, classes])
        starts = [0, *accumulate(value + 1 for value in values)][:-1]
        self.register_buffer("starts", torch.tensor(starts), persistent=False)
        self.register_buffer("masks", torch.tensor(values), persistent=False)

    def forward(self, ids: Tensor, masked: Tensor, dropped: Tensor) -> Tensor:
        """masked and dropped: (K, n, fields)."""
        shown = torch.where(masked, self.masks, ids) + self.starts
        vectors = self.table(shown) * ~dropped[..., None]
        return self.reader(vectors.sum(2))


class Algorithm(BaseAlgorithm):
    def set_up(self) -> None:
        fields = len(self.about.sizes.categories)
        if not fields:
            raise ModelError("endef needs entities: categorical inputs, of which this task has none (see inputs)")
        self.fields: list[int] = self.hyperparameters["entities"] or list(range(fields))
        if not all(0 <= field < fields for field in self.fields):
            raise ModelError(f"setting entities = {self.fields}: the task's categorical inputs are 0 to {fields - 1}")

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        values = [self.about.sizes.categories[field] for field in self.fields]
        width = self.hyperparameters["entity_width"]
        network.entities = self.about.each(lambda: Entities(values, width, self.about.outputs), "entities")
        return network

    def hidden(self, ids: Tensor, clock: StepState) -> tuple[Tensor, Tensor]:
        """Which entities are masked and which are dropped, never both: like ids (K, n, fields)."""
        drawn = draw_uniform(clock.draw("entities"), ids.shape[1:], torch.float64)
        masked, dropped = (self.hyperparameters.on(name, drawn) for name in ("masked", "dropped"))
        return drawn < masked, (drawn >= masked) & (drawn < masked + dropped)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        ids = batch.inputs[0][..., self.fields]
        biased = network.entities(ids, *self.hidden(ids, clock))
        share = self.hyperparameters.on("entity_share", biased)
        joint = (1 - share) * network(*batch.inputs) + share * biased
        alone = average_over_batch(cross_entropy(biased, batch.target), batch)
        return (
            average_over_batch(cross_entropy(joint, batch.target), batch)
            + self.hyperparameters["entity_weight"] * alone
        )
