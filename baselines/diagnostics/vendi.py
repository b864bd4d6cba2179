"""G-Vendi: how many different gradients the training rows have.

    exp(- sum_i l_i log l_i),  l the eigenvalues of <g_i, g_j> / (n |g_i| |g_j|)

over the gradients g of the rows' losses with respect to all parameters: 1 where all have the same direction, n where
they are orthogonal. The Vendi score of Friedman and Dieng (section 3) with the kernel of gradients of Jung et al. They
use those of a proxy model, projected at random to fewer dimensions; here they are the trained replica's own, and exact.
Rows whose gradient is 0 have no direction and are left out.
"""

import math

import torch
from torch import Tensor

from ._subject import Subject

CITATION = (
    "Friedman and Dieng, The Vendi Score: A Diversity Evaluation Metric for Machine Learning, TMLR 2023 "
    "(arXiv:2210.02410); Jung et al., Prismatic Synthesis: Gradient-based Data Diversification Boosts "
    "Generalization in LLM Reasoning, 2025 (arXiv:2505.20161)"
)
TASKS = ("classification", "sequence")


def measure(subject: Subject) -> dict[str, Tensor]:
    """score, (K,): between 1 and the number of rows; NaN if all gradients are 0."""
    return {
        "score": torch.stack(
            [compute_vendi_score(compute_gram(subject, replica)) for replica in range(subject.replicas)]
        )
    }


def compute_gram(subject: Subject, replica: int) -> Tensor:
    """The inner products of all rows' gradients, (n, n). Blocks of rows are computed again for each other block, so
    that no more than two are in memory."""
    block_rows: list[list[Tensor]] = []
    for index, rows in enumerate(subject.row_gradients(replica)):
        above = [rows @ columns.T for _, columns in zip(range(index), subject.row_gradients(replica), strict=False)]
        block_rows.append([*above, rows @ rows.T])
    lower = torch.zeros(len(subject), len(subject), dtype=torch.float64, device=block_rows[0][0].device)
    start = 0
    for blocks in block_rows:
        across = torch.cat(blocks, dim=1)
        lower[start : start + len(across), : across.shape[1]] = across
        start += len(across)
    return lower.tril() + lower.tril(-1).T


def compute_vendi_score(products: Tensor) -> Tensor:
    """The Vendi score of vectors, from their inner products (n, n), as a scalar."""
    lengths = products.diagonal().sqrt()
    some = lengths > 0
    if not bool(some.any()):
        return products.new_tensor(math.nan)
    kernel = products[some][:, some] / torch.outer(lengths[some], lengths[some]) / some.sum()
    shares = torch.linalg.eigvalsh(kernel).clamp(min=0)
    return torch.special.entr(shares / shares.sum()).sum().exp()
