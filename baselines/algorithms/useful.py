"""USEFUL: rows that a network learns late are counted twice when it is trained again.

Stage 1 trains a network for a small share of the steps. The rows of each class are parted in two clusters by the
network's outputs, and of each class the cluster with the higher mean loss counts twice when stage 2 trains a fresh
network (Nguyen et al.). The paper's clusters are those of k-means; here its two centres start from the two sides of the
class's mean along the direction of greatest variance, so that nothing is random. It goes with sharpness-aware steps too
(the setting `sharpness`). Known trap: rows are doubled once, by the outputs of one early network, not again and again.

Not compared with released code: the authors' code was not available, and its k-means starts at random.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training.losses import cross_entropy
from . import Data, EmpiricalRisk
from ._plain import TwoStages

KIND = "any"
CITATION = (
    "Nguyen, Haddad, Gan and Mirzasoleiman, Changing the training data distribution to reduce simplicity bias improves "
    "in-distribution generalization, NeurIPS 2024 (arXiv:2404.17768)"
)
SETTINGS: dict[str, Any] = {"first_percent": 5, "upweight": 2}
"""first_percent: of the steps, spent before the rows are clustered. upweight: how often rows learned late count."""
SEARCH: dict[str, Any] = {"first_percent": ["choice", 5, 10]}

ROUNDS = 100
"""The most rounds of k-means; it stops where no row changes its cluster."""


class Algorithm(TwoStages, EmpiricalRisk):
    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        outputs = answer(*data.inputs)
        target = data.target.expand(len(outputs), -1)
        late = find_harder_rows(
            cross_entropy(outputs, target), cluster_in_two(outputs, target), target, outputs.shape[-1]
        )
        return replace(data, weight=data.weight * torch.where(late, self.hyperparameters["upweight"], 1)), True


def cluster_in_two(points: Tensor, target: Tensor) -> Tensor:
    """Which of two clusters of its class each point is in: points (K, n, classes), classes (K, n) to (K, n) bool.

    Lloyd's rounds from the halves of a class on either side of its mean along its first principal component. A class
    whose points are all alike is one cluster."""
    hot = F.one_hot(target, points.shape[-1]).to(points.dtype)
    centred = points - hot @ _compute_group_means(points, hot)
    axes = torch.stack([_find_first_axis(centred * own[..., None]) for own in hot.unbind(-1)], dim=1)
    side = (centred * (hot @ axes)).sum(-1) > 0
    for _ in range(ROUNDS):
        near, far = (_compute_distances(points, target, hot * half[..., None]) for half in (side, ~side))
        moved = near < far
        if bool((moved == side).all()):
            break
        side = moved
    return side


def find_harder_rows(losses: Tensor, side: Tensor, target: Tensor, classes: int) -> Tensor:
    """Which rows are in the cluster of their class with the higher mean loss, (K, n) bool: none of a class of one
    cluster."""
    hot = F.one_hot(target, classes).to(losses.dtype)
    ones, others = (hot * half[..., None] for half in (side, ~side))
    excess = (_compute_group_means(losses[..., None], ones) - _compute_group_means(losses[..., None], others))[
        ..., 0
    ].gather(1, target)
    two = ((ones.sum(1) > 0) & (others.sum(1) > 0)).gather(1, target)
    return torch.where(side, excess > 0, excess <= 0) & two


def _compute_group_means(points: Tensor, members: Tensor) -> Tensor:
    """The mean of each group's points: points (K, n, d) and members (K, n, G) to (K, G, d); 0 of an empty group."""
    return (members.transpose(1, 2) @ points) / members.sum(1).clamp(min=1)[..., None]


def _compute_distances(points: Tensor, target: Tensor, members: Tensor) -> Tensor:
    """Squared distances (K, n) of points to the mean of those of their own class that are members; infinite to none."""
    centres = _compute_group_means(points, members).gather(1, target[..., None].expand_as(points))
    empty = (members.sum(1) == 0).gather(1, target)
    return torch.where(empty, torch.inf, (points - centres).square().sum(-1))


def _find_first_axis(centred: Tensor) -> Tensor:
    """The first principal component of points (K, n, d) around 0, (K, d)."""
    scaled = centred / centred.abs().amax((1, 2), keepdim=True)
    # For equal points, or NaN (a replica that diverges must not stop the others), any direction will do.
    scaled = scaled.nan_to_num(0.0, 0.0, 0.0)
    return torch.linalg.eigh(scaled.transpose(1, 2) @ scaled).eigenvectors[..., -1]
