"""Trained replicas: each predicts as if it were alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ...benchmarks.answers import Answers
from ...benchmarks.harness.training import FittedModel
from ...benchmarks.model import Columns
from ...core.errors import ModelError
from ..encoding.frozen import Reader
from ..estimator import Estimator
from .predict import Encoding, predict_batch
from .replica_stack import ReplicaStack
from .training_rows import Member, digest_batch


class TrainedStack:
    """A trained replica stack and how it reads rows. Its replicas predict in one pass; the others' answers are stored
    until they are requested for the same batch, once each."""

    def __init__(self, stack: ReplicaStack, coding: Encoding, read: Reader, replicas: Collection[int]) -> None:
        """read: of a batch's columns, before they are encoded. replicas: the indices that predict."""
        self.stack, self.coding, self.read, self.replicas = stack, coding, read, replicas
        self._stored: dict[str, dict[int, Any]] = {}

    def predict(self, index: int, batch: Columns) -> Answers | list[str]:
        batch = self.read(batch)
        if len(self.stack) == 1:
            return predict_batch(self.coding, self.stack, batch)[0]  # type: ignore[no-any-return]
        key = digest_batch(batch)
        stored = self._stored.setdefault(key, {})
        if index not in stored:
            answers = predict_batch(self.coding, self.stack, batch)
            stored.update({replica: answers[replica] for replica in self.replicas})
        answer = stored.pop(index)
        if not stored:
            del self._stored[key]
        return answer  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Replica:
    """One trained replica as a model: a `CheckpointedModel` (`benchmarks/model.py`)."""

    checkpoint_stacks: Mapping[str, tuple[TrainedStack, int]]
    """By checkpoint, the final one last: the replica stack, and the replica's index in it."""
    remarks: dict[str, Any]
    """Facts about its training, and its diagnostics."""
    checkpoint: str = "last"
    """The one that `predict` uses."""

    def predict(self, batch: Columns) -> Answers | list[str]:
        """One class with its probabilities, or one text, for each row of `batch`, in its order."""
        stack, index = self.checkpoint_stacks[self.checkpoint]
        return stack.predict(index, batch)

    def checkpoints(self) -> Iterator[tuple[str, Self]]:
        """This replica at each checkpoint that the recipe saves, by name; the final one is last."""
        return ((name, replace(self, checkpoint=name)) for name in self.checkpoint_stacks)


class AdaptiveReplica(Replica):
    """A replica that adapts while it predicts."""

    def reset(self) -> None:
        """Undo the adaptation since `fit`."""
        stack = self.checkpoint_stacks[self.checkpoint][0].stack
        stack.algorithm.reset(stack.network)


@dataclass
class TrainedGroup:
    """The members of a replica group, trained on some rows. results: by the member's label, also why a training
    failed. seconds: each member's share of the training's wall clock. touched: the additional data that the training
    used, by name."""

    touched: Sequence[str] = ()
    results: dict[str, Replica | Estimator | ModelError] = field(default_factory=dict)
    seconds: float = 0.0

    def replica(self, member: Member) -> Replica | Estimator:
        """A member as a model of its own. Raises its `ModelError` if its training failed."""
        result = self.results[member.label]
        if isinstance(result, ModelError):
            raise result
        return result

    def trained(self, seed: int, values: Mapping[str, Any]) -> AbstractContextManager[FittedModel]:
        """The replica of a seed and a setting's values, as the evaluation loop uses it."""
        model = self.replica(Member(seed, values))
        return nullcontext(FittedModel(model, model.remarks, self.seconds, self.touched))
