"""Losses that count rows by how hard or how rare they are: each is its formula, for replicas with own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.cvar_dro import compute_cvar
from farshift.baselines.training.trainer import Training
from farshift.core.errors import ModelError
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from torch import Tensor

from .twelve_rows import CLASSES, check_steps, descend, rows, stack, weights
from .twelve_rows import settings as of

Own = Mapping[str, Any]


def own(logits: Tensor, label: Tensor) -> Tensor:
    return logits.softmax(-1)[torch.arange(len(label)), label]


def test_focal_loss_is_its_formula() -> None:
    def objective(logits: Tensor, label: Tensor, given: Own) -> Tensor:
        p = own(logits, label)
        return ((1 - p) ** given["gamma"] * -p.log()).mean()

    check_steps("focal", [{"gamma": 2.0}, {"gamma": 0.5}, {"gamma": 0.0}], objective)
    assert of("focal")["gamma"] == 2.0
    with pytest.raises(ModelError, match="gamma = -1 of focal"):
        stack("focal", [{"gamma": -1.0}], rows())


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


def test_balanced_softmax_adds_the_logarithms_of_the_classes_frequencies() -> None:
    counts = torch.bincount(rows().target[0], minlength=CLASSES).double()

    def objective(logits: Tensor, label: Tensor, given: Own) -> Tensor:
        shares = counts * logits.exp()
        return -(shares[torch.arange(len(label)), label] / shares.sum(-1)).log().mean()

    check_steps("balanced_softmax", [{}], objective)


def test_class_reweighting_counts_rows_by_the_inverse_of_their_class_s_frequency() -> None:
    counts = torch.bincount(rows().target[0], minlength=CLASSES).double()
    check_steps("class_reweighting", [{}], lambda logits, label, _: F.cross_entropy(logits, label, 1 / counts))


def test_ldam_has_margins_by_class_frequency_and_weighs_rows_late_in_training() -> None:
    data = rows()
    x, label = data.inputs[1], data.target[0]
    counts = np.bincount(label, minlength=CLASSES)
    each = [{"max_margin": 0.5, "scale": 5.0, "effective": 0.9}, {"max_margin": 0.2, "scale": 3.0, "effective": 0.99}]
    training = Training(stack("ldam", [{**item, "defer_percent": 50} for item in each], data), data, 4)
    plain = [weights(training.stack.network, position) for position in range(2)]
    for step in range(4):
        training.step()
        for position, item in enumerate(each):
            w = plain[position]
            z = torch.relu(x @ w[0].T + w[1])
            cosines = (z / z.norm(dim=1, keepdim=True).clamp(min=1e-12)) @ (w[2] / w[2].norm(dim=1, keepdim=True)).T
            total = torch.zeros((), dtype=torch.float64)
            weight = [0.0] * CLASSES
            for c in range(CLASSES):
                weight[c] = (1 - item["effective"]) / (1 - item["effective"] ** counts[c]) if step >= 2 else 1.0
            for row, c in enumerate(label.tolist()):
                logits = item["scale"] * cosines[row]
                margin = item["max_margin"] * (counts.min() / counts[c]) ** 0.25
                own = logits[c] - item["scale"] * margin
                others = sum(logits[j].exp() for j in range(CLASSES) if j != c)
                total = total + weight[c] * ((own.exp() + others).log() - own)
            loss = total / sum(weight[c] for c in label.tolist())
            descend(w[:3], loss)
            torch.testing.assert_close(training.losses[position], loss.detach(), rtol=0, atol=1e-10)
            for ours, theirs in zip(weights(training.stack.network, position), w, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    answers = training.stack.answer(*data.inputs)
    assert float(answers.abs().max()) <= 5.0, "cosines times the scale"
    with pytest.raises(ModelError, match="effective = 1 of ldam: use 0 or more, below 1"):
        stack("ldam", [{"effective": 1.0}], data)


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


def test_mean_absolute_error_is_its_formula() -> None:
    def objective(logits: Tensor, label: Tensor, given: Own) -> Tensor:
        return (logits.softmax(-1) - F.one_hot(label, CLASSES)).abs().sum(-1).mean()

    check_steps("mae", [{}], objective)


def test_active_and_passive_losses_are_their_formula() -> None:
    def objective(logits: Tensor, label: Tensor, given: Own) -> Tensor:
        logs = logits.log_softmax(-1)
        here = F.one_hot(label, CLASSES).bool()
        normalised = logs[here] / logs.sum(-1)
        reverse = -(logits.softmax(-1) * torch.where(here, 0.0, torch.tensor(1e-4, dtype=torch.float64).log())).sum(-1)
        return (given["alpha"] * normalised + given["beta"] * reverse).mean()

    check_steps("active_passive", [{"alpha": 1.0, "beta": 1.0}, {"alpha": 10.0, "beta": 0.1}], objective)


def test_cvar_is_the_mean_of_the_worst_rows() -> None:
    def objective(logits: Tensor, label: Tensor, given: Own) -> Tensor:
        worst = F.cross_entropy(logits, label, reduction="none").sort(descending=True)[0]
        return worst[: round(given["alpha"] * len(label))].mean()

    check_steps("cvar_dro", [{"alpha": 0.25}, {"alpha": 0.5}, {"alpha": 1.0}], objective)
    with pytest.raises(ModelError, match="alpha = 0 of cvar_dro"):
        stack("cvar_dro", [{"alpha": 0.0}], rows())


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
