"""Initial weights of recurrent networks."""

from __future__ import annotations

import torch
from torch import nn

from ..layers.recurrent import LSTM, Layer, Recurrent


@torch.no_grad()
def initialise_recurrent(network: Recurrent) -> None:
    """Recurrent weights orthogonal, gate by gate (Saxe et al., ICLR 2014, arXiv:1312.6120), and an LSTM's forget gate
    open at first: 1 is added to its bias (Jozefowicz et al., ICML 2015)."""
    for layer in network.layers:
        assert isinstance(layer, Layer)
        for gate in layer.again.flatten(0, 1).chunk(layer.cell.weights, dim=-1):
            for weight in gate:
                nn.init.orthogonal_(weight)
        if isinstance(network, LSTM):
            layer.bias[..., 2 * layer.width : 3 * layer.width].add_(1.0)
