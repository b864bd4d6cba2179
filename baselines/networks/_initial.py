"""Initial weights of recurrent networks."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def recurrent(cell: nn.RNNBase | nn.LSTMCell) -> None:
    """An LSTM's recurrent weights orthogonal, gate by gate (Saxe et al., ICLR 2014, arXiv:1312.6120), and its forget
    gate open at first: bias 1 (Jozefowicz et al., ICML 2015)."""
    for name, weight in cell.named_parameters():
        if name.startswith("weight_hh"):
            for gate in weight.chunk(4):
                nn.init.orthogonal_(gate)
        elif name.startswith("bias_hh"):
            weight.chunk(4)[1].add_(1.0)
