"""Syntactic attention with its second LSTM is the authors' network, row by row, written here with torch's own layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from farshift.baselines.encoding.encoding import BOS, EOS, PAD, Sizes
from farshift.baselines.networks.syntactic_attention import SETTINGS, Network
from torch import Tensor, nn

from .side_by_side import built
from .test_recurrent import ours_in_their_order

SOURCE = torch.tensor([[4, 5, 6, 7, 8], [8, 4, PAD, PAD, PAD], [5, 5, 5, PAD, PAD], [PAD] * 5])
STEPS = 7


def made(**settings: Any) -> Network:
    network = Network(Sizes(8, source=9), SETTINGS | {"meaning": 6, "syntax": 8} | settings)
    nn.init.normal_(network.syntax.weight)
    return network


def theirs(ours: Any, replica: int) -> nn.LSTM:
    """torch's LSTM with one replica's weights."""
    (layer,) = ours.layers
    result = nn.LSTM(layer.into.shape[2], layer.width, bidirectional=layer.directions == 2).double()
    for way in range(layer.directions):
        name = "l0" + "_reverse" * way
        getattr(result, f"weight_ih_{name}").data.copy_(ours_in_their_order(layer.into[replica, way], "lstm").T)
        getattr(result, f"weight_hh_{name}").data.copy_(ours_in_their_order(layer.again[replica, way], "lstm").T)
        getattr(result, f"bias_ih_{name}").data.copy_(ours_in_their_order(layer.bias[replica, way], "lstm"))
        getattr(result, f"bias_hh_{name}").data.zero_()
    return result


def as_published(network: Any, replica: int, words: list[int]) -> Tensor:
    """Logits (STEPS, words out) of one row: equations 1-6, with what the released code adds to them."""
    ids = torch.tensor([BOS, *words, EOS])
    meanings, embedded = network.meaning.weight[replica, ids], network.syntax.weight[replica, ids]
    context, _ = theirs(network.encoder, replica)(embedded)
    before, after = context.chunk(2, dim=-1)
    none = torch.zeros_like(before[:1])
    around = torch.cat([torch.cat([none, before[:-1]]), torch.cat([after[1:], none])], dim=-1)
    ends = network.ends.weight[replica]
    roles, (last, _) = theirs(network.second, replica)(torch.cat([ends[:1], around[1:-1], ends[1:]]))
    control = torch.relu(network.first.weight[replica] @ last.flatten() + network.first.bias[replica])
    decoder, states, logits = theirs(network.decoder, replica), None, []
    for _ in range(STEPS):
        weights = (roles @ control).softmax(dim=0)
        logits.append(network.head.weight[replica] @ (weights @ meanings) + network.head.bias[replica])
        (control,), states = decoder((weights @ roles)[None], states)
    return torch.stack(logits)


def test_each_row_of_each_replica_is_that_of_the_released_network() -> None:
    network = built(made, 2)
    with torch.no_grad():
        ours = network(SOURCE.expand(2, 4, 5), torch.full((2, 4, STEPS), 4))
        for replica in range(2):
            for row, words in enumerate(SOURCE.tolist()):
                expected = as_published(network, replica, [word for word in words if word != PAD])
                assert (ours[replica, row] - expected).abs().max() < 1e-12
    assert (ours[0] - ours[1]).abs().max() > 0.1


@pytest.mark.parametrize("second", [False, True])
def test_the_second_lstm_lets_a_word_into_its_own_role_by_way_of_its_neighbours(second: bool) -> None:
    network, position = built(lambda: made(second_lstm=second), 1), int(second)
    with torch.no_grad():
        item, other = (network.start(torch.tensor([[[word, 6, 7]]]))["roles"][0, 0] for word in (4, 5))
        alone, instead = (network.start(torch.tensor([[[word]]]))["roles"][0, 0] for word in (4, 5))
    assert torch.equal(item[position], other[position]) is not second
    assert torch.equal(alone[position], instead[position]), "it has no neighbours"
