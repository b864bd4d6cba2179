"""Losses that count rows by how hard or how rare they are: each is its formula, for replicas with own settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.cvar_dro import compute_cvar
from farshift.baselines.training.trainer import Training
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from .twelve_rows import CLASSES, descend, rows, stack, weights


def test_a_row_that_is_wholly_right_has_no_focal_loss_and_no_slope() -> None:
    data = rows()
    built = stack("focal", [{"gamma": 0.5}], data)
    network = built.network
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1e6)  # all answers are certain
    training = Training(built, data, 4)
    training.step()
    assert torch.isfinite(training.losses).all()
    assert all(torch.isfinite(parameter).all() for parameter in network.parameters())


def test_crt_fits_a_fresh_head_to_classes_in_equal_shares_and_leaves_the_features() -> None:
    data = rows()
    x, label = data.inputs[1], data.target[0]
    counts = torch.bincount(label, minlength=CLASSES).double()
    training = Training(stack("crt", [{"first_percent": 50}] * 2, data), data, 4)
    plain = [weights(training.stack.network, position) for position in range(2)]
    for step in range(4):
        training.step()
        for position, w in enumerate(plain):
            if step == 2:
                w[2:] = [value[position].clone().requires_grad_() for value in training.stack.algorithm.fresh.values]
            logits = torch.relu(x @ w[0].T + w[1]) @ w[2].T + w[3]
            loss = F.cross_entropy(logits, label) if step < 2 else F.cross_entropy(logits, label, 1 / counts)
            descend(w if step < 2 else w[2:], loss)
            if step == 1:  # the second stage has begun: its head is fresh, and it has no loss yet
                continue
            torch.testing.assert_close(training.losses[position], loss.detach(), rtol=0, atol=1e-10)
            for ours, theirs in zip(weights(training.stack.network, position), w, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    assert not torch.equal(plain[0][2], plain[1][2]), "each replica has a head of its own"


@given(
    errors=st.lists(st.floats(0, 10), min_size=1, max_size=8),
    alpha=st.floats(0.01, 1.0),
    seed=st.integers(0, 99),
)
def test_cvar_is_the_largest_mean_under_its_weights(errors: list[float], alpha: float, seed: int) -> None:
    """Held to SciPy's linear programme, with rows that weigh."""
    weight = np.random.default_rng(seed).integers(1, 4, len(errors)).astype(float)
    most = weight / (alpha * weight.sum())
    best = linprog(
        -np.array(errors), A_eq=np.ones((1, len(errors))), b_eq=[1.0], bounds=list(zip(0 * most, most, strict=True))
    )
    result = compute_cvar(
        torch.tensor([errors], dtype=torch.float64),
        torch.tensor(weight)[None],
        torch.tensor([[alpha]], dtype=torch.float64),
    )
    assert float(result) == pytest.approx(-best.fun, abs=1e-7)
