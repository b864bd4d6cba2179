"""Algorithms that weight, penalise or align the risks of environments: plain loops, for every replica with its own settings."""

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import and_mask, causirl, hutchinson, sand_mask
from farshift.baselines.algorithms._environments import compute_environment_risks as of_environments
from farshift.baselines.algorithms._head import Curvature
from farshift.baselines.algorithms.domain_mixup import draw_successors
from farshift.baselines.algorithms.eqrm import kernel_quantile
from farshift.baselines.algorithms.mixup import draw_shares
from farshift.baselines.encoding.encoding import EOS, PAD
from farshift.baselines.replicas.rng import draw_permutations, make_keys
from farshift.baselines.training.sampler import Batch
from scipy.optimize import brentq
from scipy.stats import norm
from torch import Tensor

from .small_stacks import (
    ADAM,
    ENVIRONMENTS,
    PLAIN,
    batch_of,
    begun,
    clock_of,
    close,
    encode,
    head,
    rows,
    weights,
)


@pytest.mark.parametrize("restart", [True, False])
def test_a_penalty_may_forget_the_optimisers_moments_when_it_reaches_its_full_weight(restart: bool) -> None:
    train = begun("vrex", {}, common=ADAM | {"anneal_percent": 50, "restart": restart}, steps=4)
    steps = []
    for _ in range(4):
        train.step()
        steps.append(train.optimiser_steps["main"].optimiser.state()["steps"])
    assert steps == ([1, 2, 1, 2] if restart else [1, 2, 3, 4])


def test_causirl_aligns_two_mixtures_of_the_environments() -> None:
    features = torch.randn(2, 12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    first = torch.zeros(2, 12, dtype=torch.bool)
    first[0, [0, 1, 4, 8, 9]] = True
    first[1, 3] = True
    result = causirl.compute_discrepancy(features, first)
    item, other = features[0][first[0]], features[0][~first[0]]
    expected = (item.mean(0) - other.mean(0)).pow(2).mean() + (item.T.cov() - other.T.cov()).pow(2).mean()
    assert result[0].item() == pytest.approx(expected.item())
    assert result[1] == 0, "a single row has no covariance"


def test_the_risk_of_an_environment_of_texts_is_the_mean_over_texts_of_the_mean_over_their_tokens() -> None:
    logits = torch.randn(2, 4, 3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([[[4, 5, EOS], [EOS, PAD, PAD], [5, EOS, PAD], [4, 4, EOS]]]).expand(2, 4, 3)
    batch = Batch((), target, torch.zeros(2, 4, dtype=torch.int64), environments=2)
    texts = torch.stack(
        [
            torch.stack(
                [F.cross_entropy(z[:length], y[:length]) for z, y, length in zip(item, own, (3, 1, 2, 3), strict=True)]
            )
            for item, own in zip(logits, target, strict=True)
        ]
    )
    torch.testing.assert_close(of_environments(lambda: logits, batch), texts.view(2, 2, 2).mean(-1))


def test_group_weights_sum_to_one_and_a_heavier_group_is_adjusted_less() -> None:
    data = rows()
    data = data.changed(torch.where(data.group == 0, 4.0, 1.0)[None].double(), data.target)
    train = begun("group_dro", {"step_size": 0.1, "adjustment": 0.0}, {"step_size": 2.0, "adjustment": 3.0}, data=data)
    algorithm = train.stack.algorithm
    assert algorithm.reach[0].tolist() == pytest.approx([1 / 4, 1 / 2, 1 / 2])
    train.step()
    weights_now = algorithm.log_weights.exp()
    assert weights_now.sum(1).tolist() == pytest.approx([1, 1])
    assert weights_now[1].max() > weights_now[0].max() > 1 / ENVIRONMENTS


def test_group_weights_move_once_in_a_sharpness_aware_step() -> None:
    plain_step, sharp = (
        begun("group_dro", {"sharpness": rho, "step_size": 1.0}, names=("same",)) for rho in (0.0, 1e-9)
    )
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
    train = begun("eqrm", *each, common=PLAIN | {"burn_in_percent": 40}, steps=5)
    for step in range(5):
        batch, before = batch_of(train), [weights(train, k) for k in (0, 1)]
        train.step()
        for k, (w, own) in enumerate(zip(before, each, strict=True)):
            parts = zip(batch.inputs[1][k].chunk(ENVIRONMENTS), batch.target[k].chunk(ENVIRONMENTS), strict=True)
            risks = torch.stack([F.cross_entropy(head(w, encode(w, x)), y) for x, y in parts])
            alpha = torch.tensor([own["quantile"]], dtype=torch.float64)
            loss = risks.mean() if step < 2 else kernel_quantile(risks[None], alpha)[0]
            assert train.losses[k].item() == pytest.approx(loss.item(), rel=1e-10)
            slopes = torch.autograd.grad(loss, list(w.values()))
            rate = 0.1 if step < 2 else own["quantile_lr"]
            for (name, after), slope in zip(weights(train, k).items(), slopes, strict=True):
                assert close(after, w[name] - rate * slope)


def test_successors_are_one_circle_through_all_environments() -> None:
    for circle in draw_successors(make_keys([f"circle/{position}" for position in range(20)]), 5).tolist():
        position, seen = 0, []
        for _ in range(5):
            position = circle[position]
            seen.append(position)
        assert sorted(seen) == [0, 1, 2, 3, 4]
        assert position == 0


def test_shares_have_the_spread_of_each_replicas_beta() -> None:
    train = begun("mixup", {"alpha": 0.2}, {"alpha": 8.0})
    drawn = draw_shares(train.stack.hyperparameters, train.stack.keys, 20000).numpy()
    assert drawn.mean(axis=1) == pytest.approx([0.5, 0.5], abs=0.01)
    assert drawn.var(axis=1) == pytest.approx([1 / (4 * (2 * alpha + 1)) for alpha in (0.2, 8.0)], rel=0.05)


def test_a_pair_of_weighted_rows_counts_by_the_product_of_their_weights() -> None:
    data = rows()
    data = data.changed(torch.tensor([[1.0, 3.0, 0.0, 2.0]], dtype=torch.float64).repeat(1, 3), data.target)
    train = begun("mixup", {}, common=PLAIN | {"batch_size": 0}, data=data)
    batch, clock, w = batch_of(train), clock_of(train), weights(train, 0)
    partner = draw_permutations(clock.draw("partners"), len(data))[0]
    share = draw_shares(train.stack.hyperparameters, clock.draw("shares"), 1)[0]
    x, y = batch.inputs[1][0], batch.target[0]
    logits = head(w, encode(w, share * x + (1 - share) * x[partner]))
    errors = share * F.cross_entropy(logits, y, reduction="none")
    errors = errors + (1 - share) * F.cross_entropy(logits, y[partner], reduction="none")
    both = data.weight[0] * data.weight[0][partner]
    train.step()
    assert train.losses.item() == pytest.approx(((both * errors).sum() / both.sum()).item())


@pytest.mark.parametrize(("outputs", "width", "numeric"), [(3, 2, False), (1, 4, True)])
def test_the_estimate_over_all_signs_is_the_hessians_diagonal(outputs: int, width: int, numeric: bool) -> None:
    """The mean over all signs of a matrix is the estimate's expectation."""
    drawn, entries = torch.Generator().manual_seed(0), outputs * width
    features = torch.randn(1, 2, 5, width, dtype=torch.float64, generator=drawn)
    curvature = Curvature(torch.randn(1, 2, 5, outputs, dtype=torch.float64, generator=drawn).softmax(-1), numeric)
    signs = (torch.arange(1 << entries)[:, None] >> torch.arange(entries) & 1).double()
    signs = 2 * signs.view(1, -1, outputs, width) - 1
    exact = hutchinson.compute_exact_diagonal(curvature, features)
    if numeric:
        torch.testing.assert_close(exact, 2 * features.square().mean(2, keepdim=True))
    torch.testing.assert_close(hutchinson.estimate_diagonal(curvature, features, signs), exact)
    assert not torch.allclose(hutchinson.estimate_diagonal(curvature, features, signs[:, :3]), exact)


def test_an_agreement_of_a_fraction_is_met_by_that_fraction_of_signs() -> None:
    signs = torch.tensor([1.0] * 8 + [-1.0] * 2)[None, :, None]
    assert and_mask.mask_gradients(signs, torch.tensor([0.6])).item() == pytest.approx(0.6)
    assert and_mask.mask_gradients(signs, torch.tensor([0.61])).item() == 0


def test_in_the_form_of_the_unit_tests_every_environment_counts_alike() -> None:
    weight = torch.tensor([[[3.0, 4.0]], [[30.0, -40.0]]])[None]
    assert and_mask.mask_unit_gradients(weight, torch.tensor([1.0])).flatten().tolist() == pytest.approx([0.6, 0.0])
    bias = torch.tensor([[[2.0], [4.0]]])
    assert and_mask.mask_unit_gradients(bias, torch.tensor([1.0])).tolist() == [[3.0]]
    nothing = torch.zeros(1, 2, 1, 2)
    assert and_mask.mask_unit_gradients(nothing, torch.tensor([0.5])).flatten().tolist() == [0, 0]


def test_nothing_moves_where_no_sign_agrees_more_than_is_asked() -> None:
    each = torch.tensor([[[1.0, 1.0, -2.0], [3.0, -1.0, -4.0]]])
    result = sand_mask.mask_gradients(each, torch.tensor([1.0]), torch.tensor([10.0]))
    assert result.tolist() == [[0.0, 0.0, 0.0]], "an agreement of 1, DomainBed's default, is exceeded by none"
    assert sand_mask.mask_gradients(each, torch.tensor([0.5]), torch.tensor([10.0]))[0, 1] == 0
