"""Early stopping: each replica's best state on validation rows, and when it has waited long enough."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .losses import mean, task_loss
from .replica_stack import ReplicaStack
from .sampler import Batch, Data


class Validation:
    """The best loss on validation rows that each replica has had, when, and its state then."""

    def __init__(self, data: Data, replicas: int, patience: int) -> None:
        self.data, self.patience = data, patience
        self.least = [math.inf] * replicas
        self.waited = [0] * replicas
        self.kept: list[ReplicaStack | None] = [None] * replicas
        self.looked = False

    def loss(self, stack: ReplicaStack) -> Tensor:
        """The mean loss (`task_loss`) on the validation rows, (K,)."""
        logits = stack.answer(*self.data.inputs)
        target = self.data.target.expand(len(stack), *self.data.target.shape[1:])
        rows = torch.arange(len(self.data), device=target.device).expand(len(stack), -1)
        return mean(task_loss(logits, target), Batch((), target, rows))

    def look(self, stack: ReplicaStack) -> list[int]:
        """Take a look; the places of the replicas that have had `patience` looks without a new best."""
        self.looked = True
        for place, loss in enumerate(self.loss(stack).tolist()):
            if loss < self.least[place]:
                self.least[place], self.waited[place] = loss, 0
                self.kept[place] = stack.only([place])
            else:
                self.waited[place] += 1
        return [place for place, waited in enumerate(self.waited) if waited >= self.patience]

    def best(self, stack: ReplicaStack, places: list[int]) -> ReplicaStack:
        """The replicas at these places, each as it was at its best look."""
        found = stack.only(places)
        for place, state in enumerate(self.kept[one] for one in places):
            if state is not None:
                with torch.no_grad():
                    for mine, best in zip(_tensors(found), _tensors(state), strict=True):
                        mine[place] = best[0]
        return found

    def picked(self, places: list[int]) -> Validation:
        """The same for some of the replicas."""
        found = Validation(self.data, len(places), self.patience)
        found.looked = self.looked
        found.least = [self.least[place] for place in places]
        found.waited = [self.waited[place] for place in places]
        found.kept = [self.kept[place] for place in places]
        return found


def _tensors(stack: ReplicaStack) -> list[Tensor]:
    return list(stack.state_dict().values())
