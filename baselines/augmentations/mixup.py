"""Mixup: each row and its label are mixed with those of another row of the batch.

    l x_i + (1 - l) x_j,   l y_i + (1 - l) y_j,   l ~ Beta(alpha, alpha),   j a random partner of i

Zhang, Cisse, Dauphin and Lopez-Paz, ICLR 2018 (arXiv:1710.09412). One l for all rows of a batch, and partners by a
permutation of it, as the authors' code. The algorithm `mixup` mixes embeddings, and so categories too; this mixes
numbers before they are embedded, after the augmentations that come first.
"""

from typing import Any

from torch import Tensor

from ._draws import Draws
from ._partners import draw_beta_shares, draw_partners

READS = "numbers"
SETTINGS: dict[str, Any] = {"mixup_alpha": 0.2}
"""mixup_alpha: above 0, the larger the nearer to even mixes. The paper's for ImageNet (0.1 to 0.4)."""


def mixed(x: Tensor, draws: Draws) -> tuple[Tensor, Tensor, Tensor]:
    """Mix rows (K, n, ..), one draw per replica: mixed rows, partners and shares (K, n)."""
    partner, other = draw_partners(x, draws)
    share = draw_beta_shares(draws, "mixup_alpha")
    keeps = share.to(x.dtype).view(-1, *[1] * (x.ndim - 1))
    return keeps * x + (1 - keeps) * other, partner, share[:, None].expand(partner.shape)
