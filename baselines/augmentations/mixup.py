"""Mixup: each row and its label are mixed with those of another row of the batch.

    l x_i + (1 - l) x_j,   l y_i + (1 - l) y_j,   l ~ Beta(alpha, alpha),   j a random partner of i

Zhang, Cisse, Dauphin and Lopez-Paz, ICLR 2018 (arXiv:1710.09412). One l for all rows of a batch, and partners by a
permutation of it, as the authors' code. The algorithm `mixup` mixes embeddings, and so categories too; this mixes
numbers before they are embedded, after the augmentations that come first.
"""

from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import derive_stream, draw_beta
from ._draws import Draws

READS = "numbers"
SETTINGS: dict[str, Any] = {"mixup_alpha": 0.2}
"""mixup_alpha: above 0, the larger the nearer to even mixes. The paper's for ImageNet (0.1 to 0.4)."""


def mixed(x: Tensor, draws: Draws) -> tuple[Tensor, Tensor, Tensor]:
    """Mix rows (K, n, ..), one draw per replica: mixed rows, partners and shares (K, n)."""
    partner, other = draw_partners(x, draws)
    share = draw_beta_shares(draws, "mixup_alpha")
    keeps = share.to(x.dtype).view(-1, *[1] * (x.ndim - 1))
    return keeps * x + (1 - keeps) * other, partner, share[:, None].expand(partner.shape)


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
