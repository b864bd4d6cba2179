"""The labels of a task as targets of a network, and a network's outputs as answers: one class, or one number."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.answers import Answers
from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError


class Classes:
    """Labels unchanged, as int64; an answer is the class of the largest output. `outputs`: of a network for a row."""

    def __init__(self, classes: int) -> None:
        self.outputs = classes

    def encode(self, labels: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.asarray(labels, np.int64))

    def answers(self, outputs: Tensor, are_logits: bool) -> list[Answers]:
        """The answers of each replica in outputs (K, n, classes). are_logits: whether their softmax gives
        probabilities."""
        shares = outputs.softmax(-1).float().cpu().numpy()
        return [
            Answers.all_given(replica_shares.argmax(axis=1), replica_shares if are_logits else None)
            for replica_shares in shares
        ]


class Numbers:
    """Labels standardised by the mean and standard deviation of training rows, float32, so that the same settings fit
    tasks with larger numbers. Answers are mapped back."""

    outputs = 1

    def __init__(self, labels: NDArray[Any], standardised: bool = True) -> None:
        """labels: of the training rows. `ModelError` where one is not finite."""
        known = np.asarray(labels, np.float64)
        if not np.isfinite(known).all():
            raise ModelError("a training label is not a finite number: leave its row out")
        largest = float(np.abs(known).max(initial=0)) or 1.0  # squares of the labels themselves may overflow
        self.mean = largest * float((known / largest).mean()) if standardised and len(known) else 0.0
        self.deviation = (largest * float((known / largest).std()) if standardised and len(known) else 1.0) or 1.0

    def encode(self, labels: NDArray[Any]) -> Tensor:
        return torch.from_numpy(((np.asarray(labels, np.float64) - self.mean) / self.deviation).astype(np.float32))

    def answers(self, outputs: Tensor, are_logits: bool) -> list[Answers]:
        values = outputs[..., 0].double().cpu().numpy() * self.deviation + self.mean
        return [Answers.all_given(replica_values) for replica_values in values]


def make_targets(task: Task, train: Columns, standardised: bool = True) -> Classes | Numbers:
    """Make the targets of a classification or regression task from its training rows."""
    if task.type == "regression":
        return Numbers(train[task.label], standardised)
    assert task.classes, "a classification task says how many classes it has"
    return Classes(task.classes)
