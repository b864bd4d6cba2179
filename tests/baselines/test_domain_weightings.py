"""Algorithms that weight environments, mix rows or perturb parameters: the papers' formulas, replica by replica."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.domain_mixup import draw_successors
from farshift.baselines.algorithms.eqrm import kernel_quantile
from farshift.baselines.algorithms.mixup import draw_shares
from farshift.baselines.replicas.rng import draw_permutations, make_keys
from farshift.baselines.training.algorithm import StepState
from scipy.optimize import brentq
from scipy.stats import norm
from torch import Tensor, nn

from .three_environments import (
    ENVIRONMENTS,
    ROWS,
    STEPS,
    Environments,
    assert_trains_as,
    data,
    environments,
    losses,
    plain,
    risks,
    training,
)


class GroupDRO:
    """Algorithm 1 of the paper, with its adjustment for group sizes."""

    def __init__(self, sizes: list[int]) -> None:
        self.q, self.sizes = torch.ones(len(sizes), dtype=torch.float64), torch.tensor(sizes, dtype=torch.float64)

    def __call__(self, model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
        each = risks(model, given)
        adjusted = each.detach() + settings["adjustment"] / self.sizes.sqrt()
        self.q = self.q * torch.exp(settings["step_size"] * adjusted)
        self.q = self.q / self.q.sum()
        return (self.q * each).sum()


def test_group_dro_moves_weight_to_the_groups_of_greater_risk() -> None:
    each = ({"step_size": 0.1, "adjustment": 0.0}, {"step_size": 2.0, "adjustment": 3.0})
    weight = torch.ones(1, 4 * ROWS * ENVIRONMENTS, dtype=torch.float64)
    weight[0, : 4 * ROWS] = 2
    train = training("group_dro", *each, given=data(weight=weight))
    assert_trains_as(train, lambda: GroupDRO([8 * ROWS, 4 * ROWS, 4 * ROWS]))
    weights = train.stack.algorithm.log_weights.exp()
    assert weights.sum(1).tolist() == pytest.approx([1, 1])
    assert weights[1].max() > weights[0].max() > 1 / ENVIRONMENTS


def test_group_weights_move_once_in_a_sharpness_aware_step() -> None:
    plain_step, sharp = (training("group_dro", {"sharpness": rho, "step_size": 1.0}) for rho in (0.0, 1e-9))
    plain_step.step()
    sharp.step()
    moved = sharp.stack.algorithm.log_weights
    torch.testing.assert_close(moved, plain_step.stack.algorithm.log_weights, rtol=0, atol=1e-6)
    assert moved.std() > 1e-3


def kernel_estimate(values: Tensor, t: float) -> float:
    result = values.numpy()
    h = 1.06 * result.std(ddof=1) * len(result) ** -0.2
    return float(norm.cdf((t - result) / h).mean())


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.75, 0.99])
def test_the_quantile_is_where_the_kernel_estimate_reaches_its_level(alpha: float) -> None:
    values = torch.tensor([[0.3, 1.0, 0.7, 2.5], [1.0, 1.1, 5.0, 1.2]], dtype=torch.float64)
    expected = [brentq(lambda t, row=row: kernel_estimate(row, t) - alpha, -20, 20, xtol=1e-13) for row in values]
    assert kernel_quantile(values, torch.full((2,), alpha, dtype=torch.float64)).tolist() == pytest.approx(
        expected, abs=1e-9
    )


def test_every_environment_has_its_share_of_the_quantiles_gradient() -> None:
    values = torch.tensor([[0.3, 1.0, 0.7, 2.5]], dtype=torch.float64, requires_grad=True)
    alpha = torch.tensor([0.75], dtype=torch.float64)
    [gradient] = torch.autograd.grad(kernel_quantile(values, alpha).sum(), values)
    for position in range(4):
        moved = torch.zeros(1, 4, dtype=torch.float64)
        moved[0, position] = 1e-5
        difference = kernel_quantile(values.detach() + moved, alpha) - kernel_quantile(values.detach() - moved, alpha)
        assert gradient[0, position].item() == pytest.approx(difference.item() / 2e-5, rel=1e-6)
    assert gradient.sum().item() == pytest.approx(1)


def test_a_quantile_in_a_wide_gap_between_risks_is_still_between_them() -> None:
    values = torch.zeros(1, 100, dtype=torch.float64)
    values[0, 0] = 1
    values.requires_grad_()
    result = kernel_quantile(values, torch.tensor([0.99], dtype=torch.float64))
    [gradient] = torch.autograd.grad(result.sum(), values)
    assert 0 < result.item() < 1
    assert gradient.sum().item() == pytest.approx(1)


def test_equal_risks_have_their_own_value_as_quantile_and_a_finite_gradient() -> None:
    values = torch.full((1, 3), 0.7, dtype=torch.float64, requires_grad=True)
    result = kernel_quantile(values, torch.tensor([0.9]))
    [gradient] = torch.autograd.grad(result.sum(), values)
    assert result.item() == pytest.approx(0.7, abs=1e-6)
    assert gradient.sum().item() == pytest.approx(1, abs=1e-6)


def test_eqrm_minimises_the_mean_risk_first_and_the_quantile_after_at_another_rate() -> None:
    each = ({"quantile": 0.6, "quantile_lr": 0.01}, {"quantile": 0.95, "quantile_lr": 0.3})
    train = training("eqrm", *each, burn_in_percent=40, momentum=0.0)
    models = [plain(train.stack.network, replica) for replica in range(2)]
    for step in range(STEPS):
        expected = []
        for model, own, replica in zip(models, each, range(2), strict=True):
            result = risks(model, environments(train, replica, step))
            alpha = torch.tensor([own["quantile"]], dtype=torch.float64)
            loss = result.mean() if step < 2 else kernel_quantile(result[None], alpha)[0]
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter -= (0.1 if step < 2 else own["quantile_lr"]) * gradient
            expected.append(loss.item())
        train.step()
        assert train.losses.tolist() == pytest.approx(expected, rel=1e-10)


def test_successors_are_one_circle_through_all_environments() -> None:
    for circle in draw_successors(make_keys([f"circle/{position}" for position in range(20)]), 5).tolist():
        position, seen = 0, []
        for _ in range(5):
            position = circle[position]
            seen.append(position)
        assert sorted(seen) == [0, 1, 2, 3, 4]
        assert position == 0


def test_shares_have_the_spread_of_each_replicas_beta() -> None:
    train = training("mixup", {"alpha": 0.2}, {"alpha": 8.0})
    drawn = draw_shares(train.stack.hyperparameters, train.stack.keys, 20000).numpy()
    assert drawn.mean(axis=1) == pytest.approx([0.5, 0.5], abs=0.01)
    assert drawn.var(axis=1) == pytest.approx([1 / (4 * (2 * alpha + 1)) for alpha in (0.2, 8.0)], rel=0.05)


def test_a_pair_of_weighted_rows_counts_by_the_product_of_their_weights() -> None:
    weight = torch.tensor([[1.0, 3.0, 0.0, 2.0]] * 1, dtype=torch.float64).repeat(1, ENVIRONMENTS * ROWS)
    train = training("mixup", {}, batch_size=0, given=data(weight=weight))
    [(batch, _)] = train.sampler.batches(0)
    partner = draw_permutations(StepState(0, STEPS, 0, 0, train.stack.keys).draw("partners"), weight.shape[1])[0]
    share = draw_shares(train.stack.hyperparameters, StepState(0, STEPS, 0, 0, train.stack.keys).draw("shares"), 1)[0]
    model, x, y = plain(train.stack.network, 0), batch.inputs[1][0], batch.target[0]
    logits = model(share * x + (1 - share) * x[partner])
    errors = share * F.cross_entropy(logits, y, reduction="none")
    errors = errors + (1 - share) * F.cross_entropy(logits, y[partner], reduction="none")
    both = weight[0] * weight[0][partner]
    assert losses(train).item() == pytest.approx(((both * errors).sum() / both.sum()).item())
