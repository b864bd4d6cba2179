"""Normalisation per replica: of a layer, of a batch."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core.errors import ModelError
from ..replicas.rng import Rng
from .convolution import apply_per_replica

EPS = 1e-5
"""Added to a variance before its root is taken."""


class LayerNorm(nn.Module):
    """Over the last axis of (K, n, .., width) (Ba et al. 2016, arXiv:1607.06450). weight and bias: (K, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, width))
        self.bias = nn.Parameter(torch.zeros(1, width))

    def forward(self, x: Tensor) -> Tensor:
        flat = F.layer_norm(x, x.shape[-1:], eps=EPS)
        around = (-1, *[1] * (x.ndim - 2), x.shape[-1])
        return torch.addcmul(self.bias.view(around), flat, self.weight.view(around))


class BatchNorm(nn.Module):
    """Over rows and places of (K, n, width, ..) (Ioffe and Szegedy, ICML 2015, arXiv:1502.03167), each replica by its
    own batch. weight and bias: (K, width).

    While training, a batch is normalised by its own moments and `running_mean` and `running_var` (K, width) move by the
    share `momentum` towards them (the variance without bias), as torch.nn.BatchNorm2d's. In evaluation (the module's
    `eval()`, or a noise that is silent) they replace the batch's moments and do not change. `ModelError` for a batch
    of a single value a channel, which has no variance.

    ghost: rows of a ghost batch (Hoffer, Hubara and Soudry, NeurIPS 2017, arXiv:1705.08741, algorithm 1): a batch of
    twice as many and more is normalised in pieces, each by its own moments, towards which the running ones move one
    piece after the other. Pieces are as even as possible, none with fewer rows than `ghost`. 0: always one piece."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int, ghost: int = 0) -> None:
        super().__init__()
        self.eps, self.momentum, self.ghost = EPS, 0.1, ghost
        self.weight = nn.Parameter(torch.ones(1, width))
        self.bias = nn.Parameter(torch.zeros(1, width))
        self.register_buffer("running_mean", torch.zeros(1, width))
        self.register_buffer("running_var", torch.ones(1, width))
        self.rng: Rng | None = None

    def forward(self, x: Tensor) -> Tensor:
        learns = self.training and not (self.rng is not None and self.rng.silent)
        if learns and x.shape[1] * math.prod(x.shape[3:]) == 1:
            raise ModelError("batch normalisation cannot train on a batch of one value: set batch_size to 2 or more")
        states = self.running_mean, self.running_var, self.weight, self.bias
        if x.device.type == "cpu":
            return apply_per_replica(partial(self._normalised, learns), x, *states)
        return self._joined(learns, x, *states)

    def _normalised(self, learns: bool, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        pieces = max(1, len(x) // self.ghost) if learns and self.ghost else 1
        moments = mean, var, weight, bias, learns, self.momentum, self.eps
        if pieces == 1:
            return F.batch_norm(x, *moments)
        return torch.cat([F.batch_norm(piece, *moments) for piece in x.tensor_split(pieces)])

    def _joined(self, learns: bool, x: Tensor, *states: Tensor) -> Tensor:
        """One call in which every replica's channels are channels of one batch: one launch on a GPU, whatever K is."""
        mean, var, weight, bias = (state.view(-1) for state in states)
        wide = self._normalised(learns, x.transpose(0, 1).flatten(1, 2), mean, var, weight, bias)
        return wide.view(len(wide), *x.shape[:1], *x.shape[2:]).transpose(0, 1)
