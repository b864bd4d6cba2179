"""A lottery ticket: small weights of a trained network are pruned, the others rewound to their initial values.

Frankle and Carbin, ICLR 2019 (arXiv:1803.03635), prune by magnitude and rewind to the initial weights. Minegishi,
Iwasawa and Matsuo find that a ticket from a network that has grokked generalises in fewer steps than the whole network
or a random mask of the same sparsity. As in their released code, one threshold holds for all weight matrices; biases
and scales are kept. Compare a ticket's second stage with a whole network of as many steps: `first_percent` of the steps
train the network that is pruned.

Not compared with released code: the released code prunes a perceptron trained by its own loop; the threshold, the share
kept and the rewinding follow it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..replicas.rng import derive_stream, draw_uniform, make_keys
from . import Build, Data, StepState, erm
from ._plain import TwoStages
from ._rows import select_smallest
from ._weights import RunningMean

KIND = "any"
CITATION = (
    "Minegishi, Iwasawa and Matsuo, Grokking tickets: lottery tickets accelerate grokking, 2023 (arXiv:2310.19470)"
)
TASKS = ("classification", "sequence", "regression")
SETTINGS: dict[str, Any] = {
    "loss": "cross-entropy",
    "label_smoothing": 0.0,
    "pruned": 0.6,
    "mask": "magnitude",
    "first_percent": 75,
}
"""loss, label_smoothing: as of empirical risk. pruned: the share of the weights that is pruned. mask: `magnitude`, or
`random`, which prunes as many weights drawn at random. first_percent: of the steps, before the network is pruned."""
SEARCH: dict[str, Any] = {"pruned": ["uniform", 0.2, 0.8]}
LIMITS = {"loss": ("cross-entropy", "squared"), "mask": ("magnitude", "random"), "pruned": "at least 0 and below 1"}


class Algorithm(TwoStages, erm.Algorithm):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        if build.stage == 0:
            self.initial = RunningMean(list(network.parameters())).to(self.hyperparameters["lr"])
            self.initial.take(list(network.parameters()))
            self.masks = RunningMean(list_matrices(network)).to(self.hyperparameters["lr"])
        else:
            self.initial.put(list(network.parameters()))
            self._prune(network)
        return network

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        scores = [matrix.detach().abs() for matrix in list_matrices(network)]
        if self.hyperparameters["mask"] == "random":
            keys = derive_stream(make_keys(self.about.names, scores[0].device), "lottery_ticket")
            scores = [
                draw_uniform(derive_stream(keys, str(index)), score.shape[1:], score.dtype)
                for index, score in enumerate(scores)
            ]
        self.masks.take(choose_largest(scores, self.hyperparameters.on("pruned", scores[0])))
        return data, True

    def after(self, network: Any, clock: StepState) -> None:
        if clock.stage == 1:
            self._prune(network)

    @torch.no_grad()
    def _prune(self, network: Any) -> None:
        for matrix, mask in zip(list_matrices(network), self.masks.values, strict=True):
            matrix *= mask


def list_matrices(network: Any) -> list[Tensor]:
    """The weights that are pruned: those with two axes or more besides the replica axis."""
    return [parameter for parameter in network.parameters() if parameter.ndim > 2]


def choose_largest(scores: list[Tensor], pruned: Tensor) -> list[Tensor]:
    """For each tensor of scores (K, ..) 1 where a weight is kept and 0 where it is pruned: in each replica its share
    `pruned` (K, ..) of all weights, rounded down, with the smallest scores."""
    joint = torch.cat([score.flatten(1) for score in scores], dim=1)
    count = (pruned.reshape(len(joint), -1)[:, :1].double() * joint.shape[1] + 1e-9).long()
    retained = ~select_smallest(joint, count[:, 0])
    masks = torch.split(retained.to(joint.dtype), [score[0].numel() for score in scores], dim=1)
    return [mask.view_as(score) for mask, score in zip(masks, scores, strict=True)]
