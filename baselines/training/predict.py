"""Predictions of the replicas of a replica stack: from a batch's columns to each replica's answers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from ...benchmarks.answers import Answers
from ...benchmarks.model import Columns
from ..encoding.bad_files import answer_readable_rows
from ..encoding.encoding import PAD, AnswerEncoding, SequenceEncoding
from .replica_stack import ReplicaStack

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
        order = (inputs[0] != PAD).sum(dim=1).argsort(stable=True)
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
