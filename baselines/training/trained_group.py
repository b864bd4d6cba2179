"""The replicas of a group after training; each predicts as if it were alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self

from ...benchmarks.answers import Answers
from ...benchmarks.harness.loop import FittedModel
from ...benchmarks.model import Columns, Task
from ...core.clock import Stopwatch
from ...core.errors import ModelError
from ...loaders.batching.encoded import EncodedFiles
from ..compatibility import list_required_data
from ..diagnostics import diagnose_stack
from ..encoding.encoding import RowEncoding
from ..estimator import Estimator
from ..recipe import Recipe
from ..replicas.stacked import count_parameters
from .predict import Encoding, predict_batch
from .replica_stack import ReplicaStack
from .sampler import Data
from .trainer import Outcome
from .training_rows import Member, digest_batch


@dataclass
class TrainedReplica:
    """Where a member's replica is, and the results of its training."""

    coding: Encoding
    stacks: dict[str, tuple[ReplicaStack, int]]
    """By candidate, the last one final: the replica stack and the index in it."""
    remarks: dict[str, Any]


class TrainedGroup:
    """The members of a replica group, trained on some rows. results: by the member's label, also why a training
    failed."""

    def __init__(
        self, recipe: Recipe, task: Task, benchmark: str, members: Sequence[Member], touched: Sequence[str] = ()
    ) -> None:
        """touched: the additional data that the training used, by name."""
        self.recipe, self.task, self.benchmark, self.members = recipe, task, benchmark, list(members)
        self.touched = list(touched)
        self.results: dict[str, TrainedReplica | ModelError | Estimator] = {}
        self.read: Callable[[Columns], Columns] = dict
        """Reads a batch's columns: with features in place of them if an encoder is frozen."""
        self.seconds_before = 0.0
        """Seconds of the training that earlier processes spent, as checkpoints recorded them."""
        self._watch, self._seconds = Stopwatch(), 0.0
        self._memo: dict[tuple[str, str], dict[str, Any]] = {}

    def trained(self, seed: int, values: Mapping[str, Any]) -> AbstractContextManager[FittedModel]:
        """The replica of a seed and a setting's values, as the evaluation loop uses it."""
        member = Member(seed, values)
        return nullcontext(FittedModel(self.replica(member), self.remarks(member), self._seconds, self.touched))

    def replica(self, member: Member) -> Replica:
        """A member as a model of its own."""
        adapts = "test batches" in list_required_data(self.recipe)
        return (AdaptiveReplica if adapts else Replica)(self, member)

    def remarks(self, member: Member) -> dict[str, Any]:
        """Information on a member's training, and its diagnostics. Raises its `ModelError` if it failed."""
        return self._find(member).remarks

    def close(self) -> None:
        """The training is done: its wall-clock seconds are divided evenly among the members."""
        self._seconds = round((self._watch.seconds() + self.seconds_before) / len(self.members), 3)

    def _find(self, member: Member) -> TrainedReplica | Estimator:
        result = self.results[member.label]
        if isinstance(result, ModelError):
            raise result
        return result

    def candidates(self, member: Member) -> list[str]:
        """The names of a trained member's checkpoints, the last one final."""
        result = self._find(member)
        return list(result.stacks) if isinstance(result, TrainedReplica) else ["last"]

    def reset(self, member: Member, candidate: str) -> None:
        """Undo what an adaptive replica learned since training."""
        result = self._find(member)
        assert isinstance(result, TrainedReplica)
        stack = result.stacks[candidate][0]
        stack.algorithm.reset(stack.network)

    def announce(self, member: Member, columns: Mapping[str, EncodedFiles]) -> None:
        """Decode the images that a member will get in batches; an encoder reads images itself."""
        coding = self._find(member).coding
        if isinstance(coding, RowEncoding) and not self.recipe.encoder:
            coding.announce(columns)

    def predict(self, member: Member, batch: Columns, candidate: str = "last") -> Answers | list[str]:
        """One class with its probabilities, or one text, for each row of `batch`, in its order.

        All replicas of the member's replica stack predict in one pass; the others' answers are stored until they are
        requested for the same batch, once each."""
        result, batch = self._find(member), self.read(batch)
        if isinstance(result, Estimator):
            return result.predict(batch)
        stack, position = result.stacks[candidate]
        if len(stack) == 1:
            return predict_batch(result.coding, stack, batch)[position]  # type: ignore[no-any-return]
        key = candidate, digest_batch(batch)
        cached = self._memo.setdefault(key, {})
        if member.label not in cached:
            answers = predict_batch(result.coding, stack, batch)
            for label, other in self.results.items():
                # A replica that stopped early has no later candidates.
                if isinstance(other, TrainedReplica) and other.stacks.get(candidate, (None,))[0] is stack:
                    cached[label] = answers[other.stacks[candidate][1]]
        answer = cached.pop(member.label)
        if not cached:
            del self._memo[key]
        return answer  # type: ignore[no-any-return]

    def add_outcome(
        self, members: Sequence[Member], coding: Encoding, outcome: Outcome, data: Data, diagnose: Sequence[str]
    ) -> None:
        """Add the result of training the replica stack of some members. diagnose: names of diagnostics to add to their
        remarks."""
        for number, why in outcome.failed.items():
            name = make_replica_name(self.recipe, self.benchmark, members[number])
            self.results[members[number].label] = ModelError(f"{name}: {why}")
        for candidate, trained_stack in [*outcome.candidates, *(("last", stack) for stack in outcome.ended)]:
            for at, number in enumerate(trained_stack.number.tolist()):
                if number in outcome.failed:
                    continue
                # What one replica learns while it predicts must not affect the others.
                adapts = trained_stack.algorithm.adapts
                stack, position = (trained_stack.only([at]), 0) if adapts else (trained_stack, at)
                remarks: dict[str, Any] = {
                    "loss": outcome.losses[number],
                    "steps": float(outcome.steps[number]),
                    "parameters": float(count_parameters(stack.network)),
                    "replicas": float(len(members)),
                }
                attributes = ("decoder", "encoding", "tokenizer")
                remarks |= {name: value for name in attributes if (value := getattr(coding, name, ""))}
                result = self.results.setdefault(members[number].label, TrainedReplica(coding, {}, remarks))
                assert isinstance(result, TrainedReplica)
                result.stacks[candidate] = stack, position
        for trained_stack in outcome.ended:
            inside = diagnose_stack(trained_stack, data, self.task.type, self.benchmark, diagnose)
            for number, values in zip(trained_stack.number.tolist(), inside, strict=True):
                if isinstance(result := self.results[members[number].label], TrainedReplica):
                    result.remarks |= values


@dataclass(frozen=True)
class Replica:
    """One trained replica as a model: a `CheckpointedModel` (`benchmarks/model.py`)."""

    group: TrainedGroup
    member: Member
    candidate: str = "last"
    """The checkpoint that `predict` uses."""

    def predict(self, batch: Columns) -> Answers | list[str]:
        """One class with its probabilities, or one text, for each row of `batch`, in its order."""
        return self.group.predict(self.member, batch, self.candidate)

    def checkpoints(self) -> Iterator[tuple[str, Self]]:
        """This replica at each checkpoint that the recipe saves, by name; the final one is last."""
        return ((name, replace(self, candidate=name)) for name in self.group.candidates(self.member))

    def farshift_announce(self, columns: Mapping[str, EncodedFiles]) -> None:
        """Decode the images of a part before its batches are predicted (`harness/predictor.py`)."""
        self.group.announce(self.member, columns)


class AdaptiveReplica(Replica):
    """A replica that adapts while it predicts."""

    def reset(self) -> None:
        """Undo the adaptation since `fit`."""
        self.group.reset(self.member, self.candidate)


def make_replica_name(recipe: Recipe, benchmark: str, member: Member) -> str:
    """The name that seeds a member's replica."""
    return f"{recipe.name}/{benchmark}/{member.label}"
