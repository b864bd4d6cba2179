"""Algorithms that look at environments' gradients: the papers' formulas, for every replica with its own settings."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import and_mask, fishr, hutchinson, sand_mask
from farshift.baselines.algorithms._head import SoftmaxCurvature
from farshift.core.errors import ModelError
from torch import Tensor, nn

from .three_environments import (
    Environments,
    assert_trains_as,
    environments,
    flat_gradient,
    losses,
    plain,
    risks,
    settings,
    training,
)

TWO: tuple[dict[str, Any], dict[str, Any]] = ({"penalty": 0.5}, {"penalty": 7.0})


def iga(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    each = risks(model, given)
    gradients = torch.stack([flat_gradient(risk, model.parameters()) for risk in each])
    return each.mean() + settings["penalty"] * (gradients - gradients.mean(0)).pow(2).sum()


def test_iga_adds_the_variance_of_the_environments_gradients() -> None:
    assert_trains_as(training("iga", *TWO), lambda: iga)


class Fishr:
    """Gradients of single rows by autograd, their variances smoothed and corrected as the paper says."""

    def __init__(self) -> None:
        self.smoothed: Tensor | None = None

    def __call__(self, model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
        variances = []
        for x, y in given:
            rows = [
                flat_gradient(F.cross_entropy(model(item[None]), label[None]), model[2].parameters())
                for item, label in zip(x, y, strict=True)
            ]
            variances.append(torch.stack(rows).var(0, correction=0))
        before = 0.0 if self.smoothed is None else self.smoothed
        smoothed = settings["ema"] * before + (1 - settings["ema"]) * torch.stack(variances)
        self.smoothed = smoothed.detach()
        corrected = smoothed / (1 - settings["ema"])
        distances = (corrected - corrected.mean(0)).pow(2).mean(1)
        return risks(model, given).mean() + settings["penalty"] * distances.mean()


def test_fishr_aligns_the_smoothed_variances_of_row_gradients() -> None:
    each = ({"penalty": 0.5, "ema": 0.9}, {"penalty": 7.0, "ema": 0.5})
    assert_trains_as(training("fishr", *each, anneal_percent=0), Fishr)


def test_the_variance_of_row_gradients_is_that_of_their_outer_products() -> None:
    drawn = torch.Generator().manual_seed(0)
    features, errors = (torch.randn(7, size, dtype=torch.float64, generator=drawn) for size in (4, 3))
    rows = errors[:, :, None] * features[:, None]
    torch.testing.assert_close(fishr.compute_gradient_variances(features, errors), rows.var(0, correction=0))


def hgp(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    def product(gradient: Tensor) -> Tensor:
        norm = gradient.norm()
        return norm * flat_gradient(norm, model[2].parameters())

    each = risks(model, given)
    common = flat_gradient(each.mean(), model[2].parameters())
    expected = product(common).detach()
    distances = []
    for risk in each:
        gradient = flat_gradient(risk, model[2].parameters())
        curved, straight = (product(gradient) - expected).pow(2).sum(), (gradient - common.detach()).pow(2).sum()
        distances.append(settings["hessian"] * curved + settings["gradient"] * straight)
    return each.mean() + settings["penalty"] * torch.stack(distances).mean()


def test_hgp_aligns_gradients_of_the_head_and_their_hessian_products() -> None:
    each = ({"hessian": 3.0, "gradient": 0.2}, {"hessian": 0.5, "gradient": 5.0})
    assert_trains_as(training("hgp", *each), lambda: hgp)


def diagonal(gradient: Tensor, head: nn.Module) -> Tensor:
    rows = [flat_gradient(item, head.parameters()) for item in gradient]
    return torch.stack(rows).diagonal()


def hessian_alignment(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    each = risks(model, given)
    common = flat_gradient(each.mean(), model[2].parameters())
    expected = diagonal(common, model[2]).detach()
    distances = []
    for risk in each:
        gradient = flat_gradient(risk, model[2].parameters())
        curved = (diagonal(gradient, model[2]) - expected).pow(2).sum()
        straight = (gradient - common.detach()).pow(2).sum()
        distances.append(settings["hessian"] * curved + settings["gradient"] * straight)
    return each.mean() + settings["penalty"] * torch.stack(distances).mean()


def test_hutchinson_without_samples_aligns_the_hessians_own_diagonals() -> None:
    each = ({"hessian": 3.0, "gradient": 0.2}, {"hessian": 0.5, "gradient": 5.0})
    assert_trains_as(training("hutchinson", *each, samples=0), lambda: hessian_alignment)


def test_the_estimate_over_all_signs_is_the_hessians_diagonal() -> None:
    """The mean over all 2^6 signs of a 3 x 2 matrix is the estimate's expectation."""
    drawn = torch.Generator().manual_seed(0)
    features = torch.randn(1, 2, 5, 2, dtype=torch.float64, generator=drawn)
    curvature = SoftmaxCurvature(torch.randn(1, 2, 5, 3, dtype=torch.float64, generator=drawn).softmax(-1))
    signs = 2.0 * (torch.arange(64)[:, None] >> torch.arange(6) & 1).double().view(1, 64, 3, 2) - 1
    exact = hutchinson.compute_exact_diagonal(curvature, features)
    torch.testing.assert_close(hutchinson.estimate_diagonal(curvature, features, signs), exact)
    assert not torch.allclose(hutchinson.estimate_diagonal(curvature, features, signs[:, :3]), exact)


def test_the_loss_under_many_samples_is_that_of_the_exact_diagonal() -> None:
    weights = {"hessian": 3.0, "gradient": 0.2}
    exact, many, few = (losses(training("hutchinson", weights, samples=count)).item() for count in (0, 20000, 2))
    assert many == pytest.approx(exact, rel=0.01)
    assert few != pytest.approx(exact, rel=0.01)


def test_the_and_mask_steps_where_signs_agree_and_makes_up_for_what_it_leaves_out() -> None:
    each = torch.tensor([[[1.0, 1.0, -2.0, 0.0], [3.0, -1.0, -4.0, 0.0]]])
    assert and_mask.mask_gradients(each, torch.tensor([1.0])).tolist() == [[4.0, 0.0, -6.0, 0.0]]
    assert and_mask.mask_gradients(each, torch.tensor([0.0])).tolist() == [[2.0, 0.0, -3.0, 0.0]]


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


def test_and_mask_follows_the_masked_gradient_of_each_parameter() -> None:
    train = training("and_mask", {"agreement": 1.0}, {"agreement": 0.3}, momentum=0.0)
    expected: list[list[Tensor]] = [[], []]
    for replica, after in enumerate(expected):
        model = plain(train.stack.network, replica)
        result = risks(model, environments(train, replica, 0))
        before = [parameter.detach().clone() for parameter in model.parameters()]
        gradients = [torch.autograd.grad(risk, list(model.parameters()), retain_graph=True) for risk in result]
        for value, *own in zip(before, *gradients, strict=True):
            agreed = (torch.stack(own).sign().mean(0).abs() >= settings(train, replica)["agreement"]).double()
            after.append(value - 0.1 * agreed * torch.stack(own).mean(0) / (1e-10 + agreed.mean()))
    train.step()
    for own, *each in zip(train.stack.network.parameters(), *expected, strict=True):
        torch.testing.assert_close(own.detach(), torch.stack(each))


@pytest.mark.parametrize("name", ["and_mask", "sand_mask"])
def test_masked_gradients_refuse_sharpness_aware_steps(name: str) -> None:
    with pytest.raises(ModelError, match=f"{name} computes gradients of its own"):
        training(name, {"sharpness": 0.05})


def test_sand_mask_follows_coordinates_by_the_agreement_of_their_signs_over_their_variance() -> None:
    train = training("sand_mask", {"agreement": 0.5}, {"agreement": 0.0, "steepness": 1e-4}, momentum=0.0)
    expected: list[list[Tensor]] = [[], []]
    for replica, after in enumerate(expected):
        model = plain(train.stack.network, replica)
        result = risks(model, environments(train, replica, 0))
        before = [parameter.detach().clone() for parameter in model.parameters()]
        gradients = [torch.autograd.grad(risk, list(model.parameters()), retain_graph=True) for risk in result]
        own_settings = settings(train, replica)
        for value, *own in zip(before, *gradients, strict=True):
            each = torch.stack(own)
            ahead = each.sign().mean(0).abs() - own_settings["agreement"]
            mask = torch.tanh(own_settings["steepness"] * ahead / each.var(0)).clamp(min=0).nan_to_num(1.0)
            after.append(value - 0.1 * mask * each.mean(0) / (1e-10 + mask.mean()))
    train.step()
    for own, *each in zip(train.stack.network.parameters(), *expected, strict=True):
        torch.testing.assert_close(own.detach(), torch.stack(each))


def test_nothing_moves_where_no_sign_agrees_more_than_is_asked() -> None:
    each = torch.tensor([[[1.0, 1.0, -2.0], [3.0, -1.0, -4.0]]])
    result = sand_mask.mask_gradients(each, torch.tensor([1.0]), torch.tensor([10.0]))
    assert result.tolist() == [[0.0, 0.0, 0.0]], "an agreement of 1, DomainBed's default, is exceeded by none"
    assert sand_mask.mask_gradients(each, torch.tensor([0.5]), torch.tensor([10.0]))[0, 1] == 0
