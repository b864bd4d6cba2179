"""Meta-learning for compositional generalisation: a step on a batch must reduce the loss on similar rows.

Conklin, Wang, Smith and Titov, ACL 2021 (arXiv:2106.04252), equations 1 and 2, after Li et al., AAAI 2018
(arXiv:1710.03463):

    L = L_train(theta) + L_test(theta'),   theta' = theta - a grad L_train(theta),

where each row x of the batch brings one meta-test row x' ~ softmax(k(x, x') / eta) from the training rows: rows like
it, so that words met together must be distinguished. The kernel k is the cosine of the counts of n-grams of the two
inputs, up to `grams` words long (the spectrum kernel of Leslie et al., PSB 2002), in place of the paper's string kernel
of subsequences; x' is drawn among `pool_rows` rows, drawn anew in every step by their weights, never x itself.

The update is first-order if `second_order` is off: the gradient of L_test is computed at theta' and applied at theta.
The values of a, eta and `pool_rows` are this project's: the inner step is a plain one, at a rate near that of the
outer.

Not compared with released code: the subsequence kernel, the pool of rows and the learning rates differ from those of
the paper.
"""

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..encoding.encoding import PAD
from ..replicas.rng import draw_uniform
from ..training.losses import average_over_batch, cross_entropy
from ..training.sampler import select_batch
from . import BaseAlgorithm, Batch, StepState
from ._rows import sample_by_weight

KIND = "compositional"
CITATION = "Conklin, Wang, Smith and Titov, Meta-learning to compositionally generalize, ACL 2021 (arXiv:2106.04252)"
TASKS = ("sequence",)
SETTINGS: dict[str, Any] = {
    "inner_lr": 0.05,
    "temperature": 0.1,
    "meta_weight": 1.0,
    "grams": 3,
    "pool_rows": 256,
    "second_order": False,
}
"""inner_lr: a. temperature: eta. meta_weight: of L_test; 1 is the paper's."""
SEARCH: dict[str, Any] = {"inner_lr": ["log10", -2.5, -0.5], "temperature": ["log10", -2.0, 0.0]}


class Algorithm(BaseAlgorithm):
    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        second = self.hyperparameters["second_order"]
        test = self.similar(batch, clock)
        names, parameters = zip(*network.named_parameters(), strict=True)
        # The fused kernels of attention have no second derivative.
        with sdpa_kernel(SDPBackend.MATH) if second else nullcontext():
            losses = average_over_batch(cross_entropy(network(*batch.inputs), batch.target), batch)
            gradients = torch.autograd.grad(losses.sum(), parameters, retain_graph=True, create_graph=second)
            moved = {
                name: parameter - self.hyperparameters.on("inner_lr", parameter) * gradient
                for name, parameter, gradient in zip(names, parameters, gradients, strict=True)
            }
            after = average_over_batch(cross_entropy(functional_call(network, moved, test.inputs), test.target), test)
        weight: Tensor = self.hyperparameters["meta_weight"]
        return losses + weight * after

    def similar(self, batch: Batch, clock: StepState) -> Batch:
        """A meta-test row for each row of the batch, in its order."""
        data = self.about.data
        pool = sample_by_weight(data.weight, clock.draw("meta/pool"), self.hyperparameters["pool_rows"])
        alike = spectrum_kernel(batch.inputs[0], data.inputs[0][pool], self.hyperparameters["grams"])
        scores = alike / self.hyperparameters.on("temperature", alike)
        scores = scores.masked_fill(batch.rows[:, :, None] == pool[:, None, :], -1e9)
        # The largest of scores with Gumbel noise is a draw from their softmax.
        noise = -torch.log(-torch.log(draw_uniform(clock.draw("meta/row"), scores.shape[1:], torch.float64) + 1e-300))
        return select_batch(data, pool.gather(1, (scores + noise).argmax(dim=2)))


def spectrum_kernel(a: Tensor, b: Tensor, grams: int) -> Tensor:
    """The cosine of the counts of all n-grams of 1 .. `grams` words, texts a (K, n, S) with b (K, P, T): (K, n, P)
    float64; 0 for texts without words."""
    total, of_a, of_b = (torch.zeros(1, dtype=torch.float64, device=a.device) for _ in range(3))
    words = int(max(a.max(), b.max())) + 1
    a, b = (F.pad(ids, (0, max(0, grams - ids.shape[2])), value=PAD) for ids in (a, b))
    for size in range(1, grams + 1):
        (first, kept_a), (second, kept_b) = _encode_ngrams(a, size, words), _encode_ngrams(b, size, words)
        _, indices = torch.unique(torch.cat([first.flatten(), second.flatten()]), return_inverse=True)
        counts = int(indices.max()) + 1
        ids_a, ids_b = indices[: first.numel()].view(first.shape), indices[first.numel() :].view(second.shape)
        x, y = _count_ngrams(ids_a, kept_a, counts), _count_ngrams(ids_b, kept_b, counts)
        total = total + torch.bmm(x, y.transpose(1, 2))
        of_a, of_b = of_a + x.square().sum(2), of_b + y.square().sum(2)
    norms = (of_a[:, :, None] * of_b[:, None, :]).sqrt()
    return total / norms.clamp(min=1)


def _encode_ngrams(ids: Tensor, size: int, words: int) -> tuple[Tensor, Tensor]:
    """The n-grams of texts (K, n, S) as one number each, (K, n, S - size + 1), and which hold no padding."""
    windows = ids.unfold(2, size, 1)
    codes = torch.zeros_like(windows[..., 0])
    for offset in range(size):
        codes = codes * words + windows[..., offset]
    return codes, (windows != PAD).all(dim=-1)


def _count_ngrams(ids: Tensor, is_valid: Tensor, counts: int) -> Tensor:
    """How often each number occurs in each text, (K, n, counts)."""
    totals = torch.zeros(*ids.shape[:2], counts, dtype=torch.float64, device=ids.device)
    return totals.scatter_add_(2, ids, is_valid.to(totals.dtype))
