"""In-context Bayesian regression on the pairs of each prompt, with noise of an unknown size; only its prior is trained.

Noise has one of `levels` standard deviations s, evenly spaced from `least` to `most`, and weights are normal of
variance 1. With X, y the n pairs of a prompt, A = X'X + s^2 I of d rows, and w = A^-1 X'y, the evidence of s is

    -2 log p(y | X, s) = (n - d) log s^2 + log |A| + (y'y - y'X w) / s^2 + n log 2 pi

(the marginal y ~ N(0, X X' + s^2 I), Rasmussen and Williams 2006, equation 2.30, by the matrix determinant lemma). The
answer is the posterior mean over s of x . w, or of s itself for a query that asks for the deviation. At the true prior
no prediction has a lower expected squared error: the Bayes-optimal predictor with which "Towards Better Understanding
of In-Context Learning Ability from In-Context Uncertainty Quantification" (arXiv:2405.15115) compares Transformers.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.encoding import Sizes
from . import _prompts

TASK = "regression"
SETTINGS: dict[str, Any] = {"least": 0.2, "most": 1.0, "levels": 17}
"""least, most: the smallest and the largest standard deviation of the noise; levels: how many there are. Set them with
`scaled = false`, so that inputs and targets are in their own units."""


class Network(nn.Module):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.lines, self.inputs = _prompts.check_prompt(sizes, "prompt_bayes")
        least, most, levels = settings["least"], settings["most"], settings["levels"]
        if not (0 < least <= most and levels >= 1):
            raise ModelError(
                f"settings least = {least}, most = {most}, levels = {levels}: use 0 < least <= most, levels >= 1"
            )
        self.grid = (least, most, levels)
        self.log_prior = nn.Parameter(torch.zeros(1, levels))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Flat prompts `numbers` (K, n, lines * (width + 2)) to outputs (K, n, 1); `categories` is empty."""
        prompt = _prompts.split_lines(numbers.double(), self.lines)
        pairs, query = prompt[..., :-1, :], prompt[..., -1, :]
        x = pairs[..., : self.inputs] * pairs[..., -1:]
        y = pairs[..., self.inputs, None] * pairs[..., -1:]
        count = pairs[..., -1].sum(dim=-1, keepdim=True)
        deviations = torch.linspace(*self.grid, dtype=x.dtype, device=x.device)
        variances = deviations.square()
        identity = torch.eye(self.inputs, dtype=x.dtype, device=x.device)
        # Of each prompt and level: (K, n, levels, inputs, inputs).
        gram = (x.transpose(-1, -2) @ x)[..., None, :, :] + variances[:, None, None] * identity
        moment = (x.transpose(-1, -2) @ y)[..., None, :, :]
        factor = torch.linalg.cholesky(gram)
        weights = torch.cholesky_solve(moment.expand(*gram.shape[:-1], 1), factor)[..., 0]
        log_determinant = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        left = y.square().sum(dim=(-2, -1))[..., None] - (moment[..., 0] * weights).sum(dim=-1)
        evidence = -((count - self.inputs) * variances.log() + log_determinant + left / variances) / 2
        posterior = (evidence + self.log_prior.to(x.dtype)[..., None, :]).softmax(dim=-1)
        mean = (posterior * (weights * query[..., None, : self.inputs]).sum(dim=-1)).sum(dim=-1, keepdim=True)
        deviation = (posterior * deviations).sum(dim=-1, keepdim=True)
        return torch.where(query[..., self.inputs, None] != 0, deviation, mean).to(numbers.dtype)
