"""In-context ridge regression on the pairs of each prompt; only the penalty is trained.

With X and y the pairs of a prompt and x the query, the output is x . (X'X + penalty I)^-1 X'y. Where weights are normal
of variance t and noise of variance s, this is the posterior mean at a penalty of s / t, and no prediction has a lower
expected squared error (Hoerl and Kennard, Technometrics 1970; Garg et al., NeurIPS 2022, arXiv:2208.01066, compare
Transformers with it). A penalty of nearly 0 is least squares; with fewer pairs than unknowns, the minimum-norm one.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.encoding import Sizes
from . import _prompts

TASK = "regression"
SETTINGS: dict[str, Any] = {"penalty": 1.0}
"""penalty: the initial value, above 0; its logarithm is the only parameter. Set it with `scaled = false`, so that
inputs and targets are in their own units."""


class Network(nn.Module):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.lines, self.inputs = _prompts.check_prompt(sizes, "prompt_ridge")
        if not settings["penalty"] > 0:
            raise ModelError(f"setting penalty = {settings['penalty']}: give a number above 0")
        self.log_penalty = nn.Parameter(torch.full((1, 1), math.log(settings["penalty"])))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Flat prompts `numbers` (K, n, lines * (width + 2)) to outputs (K, n, 1); `categories` is empty."""
        # In float64: with as many pairs as unknowns the equations may be almost singular.
        prompt = _prompts.split_lines(numbers.double(), self.lines)
        pairs, query = prompt[..., :-1, :], prompt[..., -1, : self.inputs]
        x = pairs[..., : self.inputs] * pairs[..., -1:]
        y = pairs[..., self.inputs, None] * pairs[..., -1:]
        penalty = self.log_penalty.double().exp()[..., None, None]
        gram = x.transpose(-1, -2) @ x + penalty * torch.eye(self.inputs, dtype=x.dtype, device=x.device)
        weights = torch.linalg.solve(gram, x.transpose(-1, -2) @ y)
        predictions: Tensor = query[..., None, :] @ weights
        return predictions[..., 0].to(numbers.dtype)
