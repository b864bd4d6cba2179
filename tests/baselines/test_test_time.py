"""Adaptation to test batches by normalisation, by sure rows and by neighbours: each is what plain loops come to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from farshift.baselines.algorithms._norms import interpolate_moments
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.core.errors import ModelError
from torch import Tensor

from .shifted_stacks import IMAGES, RESNET, asked, finished, near, wide_rows
from .small_stacks import ADAM, begun

ROWS = 8


def adapting(algorithm: str, *each: dict[str, Any], **settings: Any) -> tuple[ReplicaStack, Data]:
    """A trained residual network of two replicas, and its data."""
    data = wide_rows(sizes=IMAGES)
    training = begun(algorithm, *each, common=RESNET | settings, data=data, network="resnet", sizes=IMAGES)
    return finished(training), data


def test_a_single_value_keeps_the_variance_of_training_and_moments_are_put_back() -> None:
    stack, _ = adapting("batch_norm_adaptation", {})
    network = stack.network
    norm = network.body[0].norm
    before = norm.running_mean, norm.running_var
    with interpolate_moments(network, torch.ones(1, dtype=torch.float64)), torch.no_grad():
        assert near(norm(torch.full((1, 1, 2, 1, 1), 3.0, dtype=torch.float64))[0, 0, :, 0, 0], norm.bias[0])
    assert norm.running_mean is before[0]
    assert norm.running_var is before[1]


def test_shot_keeps_its_head_and_adapts_to_rows_without_labels() -> None:
    data = wide_rows()
    training = begun("shot", {}, common=ADAM | {"source_percent": 50}, data=data, steps=4)
    for _ in range(2):
        training.step()
    before = {name: p.detach().clone() for name, p in training.stack.network.named_parameters()}
    training.step()
    moved = {name for name, p in training.stack.network.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {"hidden.0.weight", "hidden.0.bias"}
    with pytest.raises(ModelError, match="shot trains on inputs of the shifted test rows"):
        begun("shot", {}, data=replace(data, unlabelled=None))


def test_memo_answers_each_row_by_itself() -> None:
    stack, data = adapting("memo", {"adaptive_lr": 0.3}, {"adaptive_lr": 0.1}, views=3)
    result = asked(stack, data, 4)
    assert torch.equal(result.flip(1), asked_in(stack, data, torch.arange(23, -1, -1)))


def asked_in(stack: ReplicaStack, data: Data, order: Tensor) -> Tensor:
    """Answers to rows in another order, in batches of another size."""
    return stack.answer(*(x[order] for x in data.inputs), rows=6)


def test_what_only_looks_at_the_batch_remembers_nothing() -> None:
    stack, data = adapting("batch_norm_adaptation", {"prior": 4.0})
    assert torch.equal(asked(stack, data, ROWS), asked(stack, data, ROWS))
    for affinity in ("rbf", "knn", "linear"):
        stack = finished(begun("lame", {}, common=ADAM | {"affinity": affinity, "neighbours": 2}, data=wide_rows()))
        assert torch.equal(asked(stack, data := wide_rows(), ROWS), asked(stack, data, ROWS))
