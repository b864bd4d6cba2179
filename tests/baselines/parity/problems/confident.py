"""What confident learning counts on sixty rows whose out-of-sample probabilities are given: the confident joint, the joint
distribution, and which rows are pruned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from farshift.baselines.algorithms import confident_learning
from torch import Tensor

from .. import toy

ROWS = 60


def labels() -> Tensor:
    """(ROWS,), of which every fifth is another class than the probabilities lean to."""
    position = torch.arange(ROWS)
    return (position + (position % 5 == 0).long()) % toy.CLASSES


def probabilities() -> Tensor:
    """(ROWS, CLASSES)."""
    leaning = torch.nn.functional.one_hot(torch.arange(ROWS) % toy.CLASSES, toy.CLASSES)
    return (1.6 * toy.wave((ROWS, toy.CLASSES), 0.9) + 1.4 * leaning).softmax(-1)


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`confident`, `joint` and `pruned`."""
    output, given = probabilities()[None], labels()[None]
    joint = confident_learning.estimate_joint(output, given)
    return {
        "confident": confident_learning.compute_confident_joint(output, given)[0].tolist(),
        "joint": joint[0].tolist(),
        "pruned": confident_learning.find_pruned_rows(output, given, joint)[0].long().tolist(),
    }
