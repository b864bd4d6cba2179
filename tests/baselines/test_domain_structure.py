"""Algorithms that set something against the network while it trains: discriminators, style heads, muted features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import rsc, sagnet
from farshift.baselines.replicas.rng import draw_permutations, draw_uniform
from torch import Tensor

from .small_stacks import CLASSES, batch_of, begun, clock_of, close, encode, farthest_alone, head, perceptron, weights

Weights = dict[str, Tensor]


def stepped(w: Weights, loss: Tensor, lr: float, prefixes: tuple[str, ...], only: bool) -> Weights:
    """`w` after one step down `loss` of the parameters whose names begin so (only), or of all others."""
    moving = [name for name in w if name.startswith(prefixes) is only]
    slopes = torch.autograd.grad(loss, [w[name] for name in moving], allow_unused=True, retain_graph=True)
    moved = {name: w[name] - lr * g for name, g in zip(moving, slopes, strict=True) if g is not None}
    return {name: value.detach().requires_grad_() for name, value in (w | moved).items()}


def same(found: Weights, expected: Weights) -> bool:
    return all(close(found[name], expected[name]) for name in expected) and found.keys() == expected.keys()


@pytest.mark.parametrize("algorithm", ["dann", "cdann"])
def test_a_domain_adversarial_step_is_the_discriminators_then_the_networks(algorithm: str) -> None:
    each = [
        {"adversary": 0.7, "lr_discriminator": 0.3, "gradient_penalty": 2.0, "lr": 0.1},
        {"adversary": 2.5, "lr_discriminator": 0.2, "gradient_penalty": 0.0, "lr": 0.05},
    ]
    training = begun(algorithm, *(item | {"discriminator_steps": 2} for item in each))
    batch, before = batch_of(training), [weights(training, replica) for replica in (0, 1)]
    training.step()
    assert batch.group is not None
    for k, settings in enumerate(each):
        x, y, group = batch.inputs[1][k], batch.target[k], batch.group[k]
        w = before[k]

        def read(w: Weights, z: Tensor, y: Tensor = y) -> Tensor:
            return z if algorithm == "dann" else z + w["labels.weight"][y]

        def domain(w: Weights, seen: Tensor, y: Tensor = y, group: Tensor = group) -> Tensor:
            errors = F.cross_entropy(perceptron(w, seen, "discriminator", 3), group, reduction="none")
            if algorithm == "dann":
                return errors.mean()
            return torch.stack([errors[y == label].mean() for label in y.unique()]).mean()

        for _ in range(2):
            seen = read(w, encode(w, x).detach()).requires_grad_()
            summed = F.cross_entropy(perceptron(w, seen, "discriminator", 3), group, reduction="sum")
            (slopes,) = torch.autograd.grad(summed, seen, create_graph=True)
            loss = domain(w, seen) + settings["gradient_penalty"] * (slopes**2).sum(1).mean()
            w = stepped(w, loss, settings["lr_discriminator"], ("discriminator", "labels"), only=True)
        z = encode(w, x)
        loss = F.cross_entropy(head(w, z), y) - settings["adversary"] * domain(w, read(w, z))
        w = stepped(w, loss, settings["lr"], ("discriminator", "labels"), only=False)
        assert same(weights(training, k), w)


def test_a_class_that_a_batch_lacks_does_not_shrink_the_conditional_loss() -> None:
    training = begun("cdann", {})
    batch = batch_of(training)
    errors = torch.rand(1, batch.target.shape[1], dtype=torch.float64)
    one_class = type(batch)(batch.inputs, torch.full_like(batch.target, CLASSES - 1), batch.rows)
    assert close(training.stack.algorithm.average(errors, one_class), errors.mean(1))


def test_one_step_of_sagnet_follows_the_gradient_of_the_content_loss_and_the_adversary_together() -> None:
    each = [{"adversary": 0.1, "lr": 0.1}, {"adversary": 3.0, "lr": 0.2}]
    training = begun("sagnet", *each)
    batch, clock, before = batch_of(training), clock_of(training), [weights(training, k) for k in (0, 1)]
    rows = batch.target.shape[1]
    orders = {name: draw_permutations(clock.draw(name), rows) for name in ("content", "style", "adversary")}
    shares = draw_uniform(clock.draw("share"), (rows, 1), torch.float64)
    training.step()

    def parts(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, variance = z.mean(1, keepdim=True), z.var(1, keepdim=True)
        return (z - mean) / (variance + 1e-5).sqrt(), mean, variance

    for k, settings in enumerate(each):
        x, y, w = batch.inputs[1][k], batch.target[k], before[k]

        def by_style(w: Weights, z: Tensor, order: Tensor) -> Tensor:
            content, mean, variance = parts(z)
            return head(w, content[order].detach() * (variance + 1e-5).sqrt() + mean, "style_head")

        loss = F.cross_entropy(by_style(w, encode(w, x), orders["style"][k]), y)
        w = stepped(w, loss, settings["lr"], ("style_head",), only=True)
        z, order, share = encode(w, x), orders["content"][k], shares[k]
        content, mean, variance = parts(z)
        mixed = share * variance + (1 - share) * variance[order]
        restyled = content * (mixed + 1e-5).sqrt() + share * mean + (1 - share) * mean[order]
        unsure = -by_style(w, z, orders["adversary"][k]).log_softmax(1).mean()
        loss = F.cross_entropy(head(w, restyled), y) + settings["adversary"] * unsure
        assert same(weights(training, k), stepped(w, loss, settings["lr"], ("style_head",), only=False))


def test_content_is_what_scaling_and_shifting_a_row_leaves() -> None:
    x = torch.randn(2, 7, 9, dtype=torch.float64) * 1000
    changed = x * torch.rand(2, 7, 1).add(0.5) + torch.randn(2, 7, 1)
    assert torch.allclose(sagnet.compute_content(x), sagnet.compute_content(changed), atol=1e-6)


def test_style_randomisation_keeps_the_content_and_content_randomisation_the_style() -> None:
    x, order = torch.randn(2, 7, 9, dtype=torch.float64) * 1000, torch.stack([torch.randperm(7) for _ in range(2)])
    restyled = sagnet.randomise_style(x, order, torch.rand(2, 7, 1, dtype=torch.float64))
    other = sagnet.randomise_content(x, order)
    assert torch.allclose(sagnet.compute_content(restyled), sagnet.compute_content(x), atol=1e-6)
    assert not torch.allclose(restyled, x)
    assert torch.allclose(other.mean(-1), x.mean(-1))
    assert torch.allclose(other.var(-1), x.var(-1), rtol=1e-4)


def test_quantiles_of_each_replica_are_those_of_numpy() -> None:
    values = torch.randn(3, 4, 10, dtype=torch.float64)
    shares = torch.tensor([0.0, 1 / 3, 1.0], dtype=torch.float64)
    result = rsc.quantile(values, shares)
    for k, share in enumerate(shares.tolist()):
        assert np.allclose(result[k, :, 0], np.quantile(values[k].numpy(), share, axis=1), atol=1e-12)


def test_self_challenging_mutes_the_features_and_rows_that_the_definition_says() -> None:
    each = [{"muted_features": 1 / 3, "muted_rows": 1 / 3}, {"muted_features": 0.5, "muted_rows": 0.8}]
    training = begun("rsc", *(item | {"batch_size": 12} for item in each))
    batch, clock = batch_of(training), clock_of(training)
    losses = training.stack.algorithm.loss(training.stack.network, batch, clock)
    for k, settings in enumerate(each):
        x, y, w = batch.inputs[1][k], batch.target[k], weights(training, k)
        z = encode(w, x)
        slopes = w["head.weight"][y].detach().numpy()  # of the true class's logit, the head being linear
        stored = slopes < np.percentile(slopes, 100 * (1 - settings["muted_features"]), axis=1, keepdims=True)
        muted = torch.from_numpy(stored.astype(float))
        true = torch.arange(len(y)), y
        lost = (head(w, z).softmax(1)[true] - head(w, z * muted).softmax(1)[true]).detach().numpy()
        spared = lost < np.percentile(lost, 100 * (1 - settings["muted_rows"]))
        muted[torch.from_numpy(spared)] = 1.0
        assert 0 < int((muted == 0).sum()) < muted.numel()
        assert close(losses[k], F.cross_entropy(head(w, z * muted), y))


def test_without_muted_rows_self_challenging_spares_all_but_the_one_that_loses_most() -> None:
    training = begun("rsc", {"muted_features": 0.5, "muted_rows": 0.0, "batch_size": 12})
    network, batch = training.stack.network, batch_of(training)
    features = network.encode(network.embed(*batch.inputs))
    stored = training.stack.algorithm.compute_mask(network.head, features.detach(), batch.target)
    assert ((stored == 0).any(-1).sum(1) == 1).all()


@pytest.mark.parametrize("algorithm", ["dann", "cdann", "sagnet", "rsc"])
def test_replicas_come_out_the_same_alone_or_together(algorithm: str) -> None:
    assert farthest_alone(algorithm, {}, {"lr": 3e-3}, {}, steps=12) < 1e-12
