"""Neurons that are waves stay, neurons that are noise go, and the network answers as if they had never been."""

from __future__ import annotations

import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data

from .twelve_rows import stack

P, NEURONS = 13, 6


def pairs() -> Data:
    """All of a + b modulo P."""
    a, b = torch.arange(P * P) // P, torch.arange(P * P) % P
    ones = torch.ones(P * P)
    numbers = torch.zeros(P * P, 0, dtype=torch.float64)
    return Data((torch.stack([a, b], 1), numbers), ((a + b) % P)[None], ones.long(), ones[None].double())


def planted(*thresholds: float) -> ReplicaStack:
    """The first three neurons of each replica are waves of all frequencies, the others are as they were drawn."""
    each = [{"threshold": threshold, "width": NEURONS} for threshold in thresholds]
    built = stack("ipr_pruning", each, pairs(), network="quadratic_mlp", sizes=Sizes(P, (P, P)))
    value = torch.arange(P, dtype=torch.float64)
    for neuron in range(3):
        wave = torch.cos(2 * torch.pi * (neuron + 1) * value / P + 0.3 * neuron)
        with torch.no_grad():
            built.network.into.weight[:, :, neuron] = torch.cat([wave, 2 * wave])
            built.network.head.weight[:, :, neuron] = wave
    return built


def test_periodic_neurons_survive_and_random_ones_go() -> None:
    built = planted(0.7, 0.0)
    before = built.network.head.weight.detach().clone()
    built.algorithm.finish(built.network, pairs(), built.answer)
    after = built.network.head.weight.detach()
    assert torch.equal(after[0, :, :3], before[0, :, :3])
    assert (after[0, :, 3:] == 0).all()
    assert torch.equal(after[1], before[1])


def test_the_pruned_network_answers_as_one_that_never_had_the_neurons() -> None:
    built, data = planted(0.7), pairs()
    built.algorithm.finish(built.network, data, built.answer)
    a, b = data.inputs[0].T
    into, head = built.network.into.weight[0], built.network.head.weight[0]
    hidden = (into[a] + into[P + b])[:, :3].square()
    torch.testing.assert_close(built.answer(*data.inputs)[0], hidden @ head[:, :3].T, rtol=0, atol=1e-12)


def test_to_prune_twice_is_to_prune_once() -> None:
    built = planted(0.7)
    built.algorithm.finish(built.network, pairs(), built.answer)
    once = built.network.head.weight.detach().clone()
    built.algorithm.finish(built.network, pairs(), built.answer)
    assert torch.equal(once, built.network.head.weight)
