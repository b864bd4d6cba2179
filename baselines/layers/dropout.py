"""Dropout with masks drawn per replica: the same for a replica alone or among many, on every device, after a resume."""

import torch
from torch import Tensor, nn

from ..replicas.rng import Rng, draw_uniform


class Dropout(nn.Module):
    """Inverted dropout (Srivastava et al., JMLR 2014). p: (K,), a rate for each replica.

    `noise` is set by the trainer; without it, or while it is silent, nothing is dropped."""

    p: Tensor

    def __init__(self, p: float) -> None:
        super().__init__()
        self.register_buffer("p", torch.tensor([float(p)]))
        self.rng: Rng | None = None
        self._most: float | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.rng is None or self.rng.silent:
            return x
        if self._most is None:
            self._most = float(self.p.max())  # read once: each read synchronises with the GPU
        if self._most == 0:
            self.rng.skip()
            return x
        p = self.p.to(x.dtype).view(-1, *[1] * (x.ndim - 1))
        drawn = self._drawn(x)
        return torch.where(drawn < p, 0.0, x / (1 - p))

    def _drawn(self, x: Tensor) -> Tensor:
        """A uniform number for each entry of x. Those of texts (K, n, T, width) are drawn column by column: a batch is
        padded to the longest row of any replica, which must not change what a replica draws for its own columns."""
        assert self.rng is not None
        keys = self.rng.fresh()
        if x.ndim != 4:
            return draw_uniform(keys, x.shape[1:], x.dtype)
        _, rows, columns, width = x.shape
        return draw_uniform(keys, (columns, rows, width), x.dtype).transpose(1, 2)
