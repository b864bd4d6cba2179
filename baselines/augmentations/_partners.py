"""Partners within a batch, and the shares in which rows are mixed with them."""

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import derive_stream, draw_beta
from ._draws import Draws


def draw_partners(x: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
    """A permutation of each replica's rows (K, n, ..): their partners' places (K, n), and the partners."""
    partner = draws.order("partners", x.shape[1])
    return partner, x[torch.arange(len(x), device=x.device)[:, None], partner]


def draw_beta_shares(draws: Draws, setting: str) -> Tensor:
    """A draw from each replica's Beta(alpha, alpha), (K,) float64; `ModelError` if alpha is not above 0."""
    shares = []
    for key, alpha in zip(derive_stream(draws.keys, "share"), draws.setting(setting).tolist(), strict=True):
        if alpha <= 0:
            raise ModelError(f"setting {setting} = {alpha:g}: use a number above 0 (towards 0, rows are hardly mixed)")
        shares.append(draw_beta(key[None], (1,), alpha))
    return torch.cat(shares).flatten()
