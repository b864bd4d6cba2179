"""Other styles for the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..replicas.rng import derive_stream, draw_beta, draw_permutations


def mix_styles(x: Tensor, keys: Tensor, concentration: Sequence[float]) -> Tensor:
    """MixStyle (Zhou et al., ICLR 2021, arXiv:2104.02008): each row with a mean and deviation between
    its own and those of another row of the batch, the share drawn from Beta(a, a), a of each replica.

    x: (K, n, channels, height, width), whose style is that of each channel, or (K, n, width), one for all; keys:
    (K,)."""
    axes = tuple(range(3, x.ndim)) or (2,)
    # A style is a number of the batch, not a way to the loss.
    own = x.detach()
    mean, deviation = own.mean(axes, keepdim=True), (own.var(axes, correction=0, keepdim=True) + 1e-6).sqrt()
    replicas, rows = x.shape[:2]
    other = draw_permutations(derive_stream(keys, "other"), rows)
    every = torch.arange(replicas, device=x.device)[:, None]
    drawn = [
        draw_beta(key[None], (rows,), a) for key, a in zip(derive_stream(keys, "share"), concentration, strict=True)
    ]
    share = torch.cat(drawn).to(x.dtype).view(replicas, rows, *[1] * (x.ndim - 2))
    mixed_mean = share * mean + (1 - share) * mean[every, other]
    mixed_deviation = share * deviation + (1 - share) * deviation[every, other]
    return (x - mean) / deviation * mixed_deviation + mixed_mean
