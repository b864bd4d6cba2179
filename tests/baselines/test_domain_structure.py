"""Algorithms that set something against the network while it trains: discriminators, style heads, muted features."""

from __future__ import annotations

import numpy as np
import torch
from farshift.baselines.algorithms import rsc, sagnet

from .small_stacks import CLASSES, batch_of, begun, close


def test_a_class_that_a_batch_lacks_does_not_shrink_the_conditional_loss() -> None:
    training = begun("cdann", {})
    batch = batch_of(training)
    errors = torch.rand(1, batch.target.shape[1], dtype=torch.float64)
    one_class = type(batch)(batch.inputs, torch.full_like(batch.target, CLASSES - 1), batch.rows)
    assert close(training.stack.algorithm.average(errors, one_class), errors.mean(1))


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


def test_without_muted_rows_self_challenging_spares_all_but_the_one_that_loses_most() -> None:
    training = begun("rsc", {"muted_features": 0.5, "muted_rows": 0.0, "batch_size": 12})
    network, batch = training.stack.network, batch_of(training)
    features = network.encode(network.embed(*batch.inputs))
    stored = training.stack.algorithm.compute_mask(network.head, features.detach(), batch.target)
    assert ((stored == 0).any(-1).sum(1) == 1).all()
