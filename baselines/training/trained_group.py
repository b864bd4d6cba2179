"""Trained replicas: each predicts as if it were alone."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch

from ...benchmarks.answers import Answers
from ...benchmarks.harness.loop import FittedModel
from ...benchmarks.model import Columns
from ...core.errors import ModelError
from ..encoding.bad_files import answer_readable_rows
from ..encoding.encoding import PAD, AnswerEncoding, SequenceEncoding
from ..encoding.frozen import Reader
from ..estimator import Estimator
from .replica_stack import ReplicaStack
from .training_rows import Member, digest_batch

Encoding = AnswerEncoding | SequenceEncoding

TEXT_ROWS = 256
"""Rows whose texts are generated at once: with more, the attention caches no longer fit a CPU's cache."""


def predict_batch(coding: Encoding, stack: ReplicaStack, batch: Columns) -> list[Any]:
    """The answers of each replica of a stack."""
    if isinstance(coding, AnswerEncoding):
        return answer_readable_rows(coding, batch, partial(_predict_rows, coding, stack))
    return _generate_texts(coding, stack, batch)


def _predict_rows(coding: AnswerEncoding, stack: ReplicaStack, batch: Columns) -> list[Answers]:
    """A class or a number for each row."""
    inputs = [x.to(stack.keys.device) for x in coding.inputs(batch)]
    if not len(inputs[0]):
        outputs = torch.empty((len(stack), 0, coding.sizes.outputs))
    elif stack.algorithm.adapts:
        outputs = stack.answer(*inputs, rows=len(inputs[0]))
    elif coding.sizes.source:  # texts of similar length together
        order = (inputs[0] != PAD).flatten(1).sum(dim=1).argsort(stable=True)
        outputs = stack.answer(*(x[order] for x in inputs))[:, order.argsort()]
    else:
        outputs = stack.answer(*inputs)
    return coding.targets.answers(outputs, stack.algorithm.gives_logits)


def _generate_texts(coding: SequenceEncoding, stack: ReplicaStack, batch: Columns) -> list[list[str]]:
    """Decode rows of similar length together; return the answers in the batch's order."""
    source, lengths = coding.inputs(batch)
    order = np.argsort(lengths, kind="stable")
    texts = [np.empty(len(order), object) for _ in range(len(stack))]
    for start in range(0, len(order), TEXT_ROWS):
        some = order[start : start + TEXT_ROWS]
        ids = source[some, : max(1, lengths[some].max())].to(stack.keys.device)
        with torch.no_grad(), stack.rng.disabled():
            out = stack.network.generate(ids.expand(len(stack), *ids.shape), coding.limit).cpu().numpy()
        for replica_texts, written in zip(texts, out, strict=True):
            replica_texts[some] = coding.texts(written)
    return [list(replica_texts) for replica_texts in texts]


def encode_inputs(coding: Encoding, columns: Columns) -> tuple[torch.Tensor, ...]:
    """Encode the inputs of rows whose labels are not known."""
    if isinstance(coding, AnswerEncoding):
        return coding.rows(columns)
    return (coding.inputs(columns)[0],)


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
    """One trained replica as a model with `checkpoints()` (docs/evaluate.md)."""

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
