"""Sparse over-parameterisation: every row has its own sparse term that models the noise in its label.

    s_i = u_i^2 y_i - v_i^2 (1 - y_i),  u_i a number, v_i a number for each class, both squares at most 1
    q_i = [p_i + s_i]_+ / its sum
    network and u descend CE(q_i, y_i);  v descends |onehot(argmax p_i) + s_i - y_i|^2

Liu et al., ICML 2022, section 2. u and v start at about 1e-8 and go by plain gradient descent, each at a large rate of
its own: being squares they stay sparse. The rates are constant, as in the released code (a schedule and clipping are
the network's alone). That code lets u descend the squared error too; here each has its own loss, as the paper says.
Without the two further terms of the variant SOP+ (consistency of augmentations, class balance). Predictions are the
network's p.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..replicas.rng import derive_stream, draw_normal, make_keys
from ..training.losses import average_over_batch
from . import BaseAlgorithm, Batch, StepState
from ._rows import add_entries, read_entries

KIND = "corrupted-label"
CITATION = (
    "Liu, Zhu, Qu and You, Robust training under label noise by over-parameterization, ICML 2022 (arXiv:2202.14026)"
)
SETTINGS: dict[str, Any] = {"u_lr": 10.0, "v_lr": 10.0}
"""u_lr, v_lr: the rates of u and v (10 and 10 on CIFAR-10, 10 and 100 under asymmetric noise, 1 and 10 on
CIFAR-100)."""
SEARCH: dict[str, Any] = {"u_lr": ["choice", 0.1, 1.0, 10.0], "v_lr": ["choice", 1.0, 10.0, 100.0]}

SMALL = 1e-8
"""The deviation of u and v at first."""
LEAST = 1e-4
"""Probabilities are clipped from below to this."""


class Algorithm(BaseAlgorithm):
    additive = True
    remembers = True
    u: Tensor
    v: Tensor

    def set_up(self) -> None:
        first = make_keys(self.about.names)
        rows, dtype = len(self.about.data), torch.float64
        self.register_buffer("u", SMALL * draw_normal(derive_stream(first, "sop/u"), (rows, 1), dtype))
        self.register_buffer("v", SMALL * draw_normal(derive_stream(first, "sop/v"), (rows, self.about.outputs), dtype))
        self.seen: list[tuple[Tensor, Tensor, Tensor]] = []

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        logits = network(*batch.inputs)
        label = F.one_hot(batch.target, logits.shape[-1]).to(logits.dtype)
        u, v = (read_entries(table, batch.rows).requires_grad_() for table in (self.u, self.v))
        self.seen.append((batch.rows, u, v))
        up = u.square().clamp(max=1) * label
        down = v.square().clamp(max=1) * (1 - label)
        q = (logits.softmax(-1) + up - down.detach()).clamp(min=LEAST)
        q = (q / q.sum(-1, keepdim=True)).clamp(min=LEAST)
        fitted = -(label * q.log()).sum(-1)
        chosen = F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
        separated = (chosen + up.detach() - down - label).square().sum(-1)
        return average_over_batch(fitted + separated, batch)

    def after(self, network: Any, clock: StepState) -> None:
        """The optimiser step of u and v, of the rows that the step has seen."""
        for rows, u, v in self.seen:
            assert u.grad is not None
            assert v.grad is not None
            add_entries(self.u, rows, -self.hyperparameters.on("u_lr", u) * u.grad)
            add_entries(self.v, rows, -self.hyperparameters.on("v_lr", v) * v.grad)
        self.seen.clear()
