"""Algorithms that set something against the network while it trains: discriminators, style heads, muted features."""

from __future__ import annotations

import torch

from .small_stacks import CLASSES, batch_of, begun, close


def test_a_class_that_a_batch_lacks_does_not_shrink_the_conditional_loss() -> None:
    training = begun("cdann", {})
    batch = batch_of(training)
    errors = torch.rand(1, batch.target.shape[1], dtype=torch.float64)
    one_class = type(batch)(batch.inputs, torch.full_like(batch.target, CLASSES - 1), batch.rows)
    assert close(training.stack.algorithm.average(errors, one_class), errors.mean(1))


def test_without_muted_rows_self_challenging_spares_all_but_the_one_that_loses_most() -> None:
    training = begun("rsc", {"muted_features": 0.5, "muted_rows": 0.0, "batch_size": 12})
    network, batch = training.stack.network, batch_of(training)
    features = network.encode(network.embed(*batch.inputs))
    stored = training.stack.algorithm.compute_mask(network.head, features.detach(), batch.target)
    assert ((stored == 0).any(-1).sum(1) == 1).all()
