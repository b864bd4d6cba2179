"""Improved test-time adaptation: other styles, the learned consistency loss, and the map that it moves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms._style import mix_styles
from farshift.baselines.algorithms.itta import Elementwise
from farshift.baselines.replicas.rng import derive_stream, make_keys
from torch import Tensor

from .shifted_stacks import IMAGES, RESNET, asked, finished, near, wide_rows
from .small_stacks import ADAM, PLAIN, batch_of, begun, clock_of, encode, head, moved_along, weights

KEYS = make_keys(["one", "two"])


@pytest.mark.parametrize("shape", [(2, 6, 9), (2, 6, 3, 4, 5)], ids=["vectors", "images"])
def test_another_style_lies_between_a_rows_own_and_that_of_another_row(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = mix_styles(x, KEYS, [1.0, 1.0])
    channels = (x, result) if x.ndim == 5 else (x[:, :, None], result[:, :, None])
    before, after = (value.flatten(3) for value in channels)
    means, deviations = before.mean(-1), (before.var(-1, correction=0) + 1e-6).sqrt()
    content = (before - means[..., None]) / deviations[..., None]
    scale = ((after - after.mean(-1, keepdim=True)) * content).sum(-1) / content.square().sum(-1)
    for replica in range(2):
        for row in range(6):
            fits = []
            for other in range(6):
                span = means[replica, other] - means[replica, row]
                share = ((after[replica, row].mean(-1) - means[replica, row]) * span).sum() / span.square().sum()
                share = torch.nan_to_num(share)
                expected = [
                    item[replica, row] + share * (item[replica, other] - item[replica, row])
                    for item in (means, deviations)
                ]
                fits.append(near(after[replica, row].mean(-1), expected[0]) and near(scale[replica, row], expected[1]))
                fits[-1] = fits[-1] and 0 <= float(share) <= 1
            assert any(fits)
    assert not near(result, x, 1e-3)


def test_elementwise_maps_are_the_identity_above_nought_at_first() -> None:
    x = torch.tensor([[[-1.0, 0.0, 2.5]]], dtype=torch.float64)
    assert Elementwise(1, 4, 3).double()(x).tolist() == [[[0.0, 0.0, 2.5]]]


def elementwise(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """Layers (depth, width) of affine maps with ReLU between them."""
    for position, (w, b) in enumerate(zip(weight, bias, strict=True)):
        x = (torch.relu(x) if position else x) * w + b
    return x


def terms(
    w: dict[str, Tensor], a: tuple[Tensor, Tensor], x: Tensor, label: Tensor, key: Tensor
) -> tuple[Tensor, Tensor]:
    """The consistency loss of a batch and its risk in both styles."""
    z, other = encode(w, x), encode(w, mix_styles(x[None], key, [0.1])[0])
    risk = F.cross_entropy(head(w, z), label) + F.cross_entropy(head(w, other), label)
    return elementwise(*a, other - z).square().mean(), risk


def test_the_network_takes_its_step_and_then_the_consistency_loss_its_own() -> None:
    each = [{"alignment": 0.5, "adaptive_lr": 0.3}, {"alignment": 2.0, "adaptive_lr": 0.1}]
    training = begun("itta", *each, common=PLAIN | {"consistency_depth": 3, "batch_size": 8}, data=wide_rows())
    loss = training.stack.algorithm.consistency
    with torch.no_grad():
        loss.bias += torch.linspace(0, 0.2, loss.bias.numel(), dtype=torch.float64).view_as(loss.bias)
    batch, clock = batch_of(training), clock_of(training)
    before = [weights(training, replica) for replica in range(2)]
    own = [
        (loss.weight[r].detach().clone().requires_grad_(), loss.bias[r].detach().clone().requires_grad_())
        for r in range(2)
    ]
    cases = [(batch.inputs[1][replica], batch.target[replica]) for replica in range(2)]
    first, again = clock.draw("style"), clock.draw("style again")
    losses = [sum(terms(before[r], own[r], *cases[r], first[r : r + 1])) for r in range(2)]
    training.step()
    assert near(training.losses, torch.stack(losses))  # type: ignore[arg-type]
    assert moved_along(training, before, losses)  # type: ignore[arg-type]
    for replica, settings in enumerate(each):
        w = weights(training, replica)
        consistency, risk = terms(w, own[replica], *cases[replica], again[replica : replica + 1])
        features = [value for name, value in w.items() if not name.startswith("head")]
        slopes = []
        for value in (consistency, risk):
            flat = torch.cat([g.flatten() for g in torch.autograd.grad(value, features, create_graph=True)])
            slopes.append((flat - flat.mean().item()) / flat.std().item())
        distance = settings["alignment"] * (slopes[0] - slopes[1].detach()).square().mean()
        gradients = torch.autograd.grad(distance, own[replica])
        assert any(float(g.abs().max()) > 1e-6 for g in gradients)
        for parameter, start, gradient in zip((loss.weight, loss.bias), own[replica], gradients, strict=True):
            assert near(parameter[replica], start - settings["adaptive_lr"] * gradient)


def test_each_batch_moves_the_map_by_one_step_before_it_is_predicted() -> None:
    each: list[dict[str, Any]] = [{"adaptive_lr": 0.05, "test_weight": 1.0}, {"adaptive_lr": 0.01, "test_weight": 1e-6}]
    training = begun("itta", *each, common=ADAM | {"map_depth": 2}, data=wide_rows())
    stack = finished(training)
    data, loss = training.initial_data, stack.algorithm.consistency
    with torch.no_grad():
        loss.bias += 0.1  # above 0, where the loss has a slope
    result = asked(stack, data, 8)
    for replica, settings in enumerate(each):
        w = weights(training, replica)
        mapping = [torch.ones(2, 6, dtype=torch.float64), torch.zeros(2, 6, dtype=torch.float64)]
        mapping = [value.requires_grad_() for value in mapping]
        optimiser = torch.optim.Adam(mapping, lr=settings["adaptive_lr"])
        fixed = loss.weight[replica].detach(), loss.bias[replica].detach()
        for turn, x in enumerate(data.inputs[1].split(8)):
            key = derive_stream(stack.keys[replica : replica + 1], "test style", turn)
            z, other = encode(w, x).detach(), encode(w, mix_styles(x[None], key, [0.1])[0]).detach()
            moved = elementwise(*fixed, elementwise(*mapping, other) - elementwise(*mapping, z))
            optimiser.zero_grad()
            (settings["test_weight"] * moved.square().mean()).backward()
            optimiser.step()
            assert near(result[replica, 8 * turn : 8 * turn + 8], head(w, elementwise(*mapping, z)))
        assert not torch.equal(mapping[0], torch.ones_like(mapping[0]))


def test_a_map_that_has_not_moved_changes_nothing_on_negative_features_either() -> None:
    settings = RESNET | {"adaptive_lr": 0.0}
    training = begun("itta", {}, network="resnet", common=settings, data=wide_rows(sizes=IMAGES), sizes=IMAGES)
    stack = finished(training)
    inputs = [x[None] for x in training.initial_data.inputs]
    with torch.no_grad():
        features = stack.network.encode(stack.network.embed(*inputs))
        expected = stack.network(*inputs)
    assert features.min() < 0 < features.max()
    assert near(stack.answer(*training.initial_data.inputs), expected)
