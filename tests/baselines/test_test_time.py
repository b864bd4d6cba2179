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
    settings = ADAM | {"optimiser": "sgd", "momentum": 0.0, "adaptive_lr": 0.1, "pseudo": 0.4, "relabels": 1}
    training = begun("shot", {"smoothing": 0.2}, common=settings | {"source_percent": 50}, data=data, steps=4)
    for _ in range(2):
        training.step()
    w = {name: p[0].detach().clone() for name, p in training.stack.network.named_parameters()}
    head = w["head.weight"], w["head.bias"]
    own = [w["hidden.0.weight"].requires_grad_(), w["hidden.0.bias"].requires_grad_()]
    assert data.unlabelled is not None
    training.step()
    rows = training.stack.algorithm._order[1].draw(0, 4)[0]
    logits = torch.relu(data.unlabelled[1] @ own[0].T + own[1]) @ head[0].T + head[1]
    pseudo = training.stack.algorithm.pseudo[0]
    p = logits[rows].softmax(1)
    mean = p.mean(0)
    loss = -(p * (p + 1e-5).log()).sum(1).mean() + (mean * (mean + 1e-5).log()).sum()
    loss = loss - 0.4 * torch.stack([logits[row].log_softmax(0)[pseudo[row]] for row in rows]).mean()
    assert near(training.losses[0], loss)
    after = dict(training.stack.network.named_parameters())
    for parameter, name, slope in zip(own, ("weight", "bias"), torch.autograd.grad(loss, own), strict=True):
        assert near(after[f"hidden.0.{name}"][0], parameter - 0.1 * slope)
        assert torch.equal(after[f"head.{name}"][0], w[f"head.{name}"])
    with pytest.raises(ModelError, match="shot trains on inputs of the shifted test rows"):
        begun("shot", {}, data=replace(data, unlabelled=None))


def test_memo_answers_each_row_by_itself_after_a_step_towards_one_sure_answer() -> None:
    stack, data = adapting("memo", {"adaptive_lr": 0.3}, {"adaptive_lr": 0.1}, views=3)
    result = asked(stack, data, 4)
    assert torch.equal(result.flip(1), asked_in(stack, data, torch.arange(23, -1, -1)))
    for replica, rate in enumerate((0.3, 0.1)):
        item = stack.only([replica])
        network = item.network.eval()
        for row in (0, 7):
            inputs = [x[None, row : row + 1] for x in data.inputs]
            start = [p.detach().clone() for p in network.parameters()]
            p = network(*item.algorithm.views(*inputs))[0].softmax(-1).mean(0)
            slopes = torch.autograd.grad(-(p * p.log()).sum(), list(network.parameters()))
            with torch.no_grad():
                for parameter, slope in zip(network.parameters(), slopes, strict=True):
                    parameter -= rate * slope
                assert near(result[replica, row], network(*inputs)[0, 0])
                for parameter, value in zip(network.parameters(), start, strict=True):
                    parameter.copy_(value)


def asked_in(stack: ReplicaStack, data: Data, order: Tensor) -> Tensor:
    """Answers to rows in another order, in batches of another size."""
    return stack.answer(*(x[order] for x in data.inputs), rows=6)


def test_what_an_algorithm_cannot_work_with_is_refused() -> None:
    for name in ("batch_norm_adaptation", "eata", "sar"):
        with pytest.raises(ModelError, match=f"{name} .*this network has none: use resnet"):
            begun(name, {}, data=wide_rows())
    for name in ("cotta", "memo"):
        with pytest.raises(ModelError, match="it is for images of one or three channels"):
            begun(name, {}, data=wide_rows())
    with pytest.raises(ModelError, match="prior = -1 of batch_norm_adaptation"):
        begun("batch_norm_adaptation", {"prior": -1.0}, data=wide_rows())
    with pytest.raises(ModelError, match="affinity = 'cosine' of lame: use rbf, knn, linear"):
        begun("lame", {"affinity": "cosine"}, data=wide_rows())
    with pytest.raises(ModelError, match="neighbours = 0 of lame"):
        begun("lame", {"neighbours": 0}, data=wide_rows())


def test_what_only_looks_at_the_batch_remembers_nothing() -> None:
    stack, data = adapting("batch_norm_adaptation", {"prior": 4.0})
    assert torch.equal(asked(stack, data, ROWS), asked(stack, data, ROWS))
    for affinity in ("rbf", "knn", "linear"):
        stack = finished(begun("lame", {}, common=ADAM | {"affinity": affinity, "neighbours": 2}, data=wide_rows()))
        assert torch.equal(asked(stack, data := wide_rows(), ROWS), asked(stack, data, ROWS))
