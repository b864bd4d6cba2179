"""Algorithms that look at the head's gradients, where labels are numbers: brute-force autograd of the squared error."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from farshift.baselines.algorithms import hutchinson
from farshift.baselines.algorithms._head import SquaredErrorCurvature, compute_hessian_products
from farshift.baselines.training.algorithm import StepState
from farshift.baselines.training.trainer import Training
from torch import Tensor, nn

from .numbers_in_environments import training as measured
from .three_environments import Environments, assert_trains_as, flat_gradient

SIZE = 5
"""Parameters of the head: four weights, one bias."""


def training(algorithm: str, *each: dict[str, Any], **common: Any) -> Training:
    return measured(algorithm, *each, optimiser="sgd", lr=0.01, anneal_percent=0, **common)


def error(model: nn.Sequential, x: Tensor, y: Tensor) -> Tensor:
    return (model(x)[:, 0] - y).square().mean()


def hessian(gradient: Tensor, head: nn.Module) -> Tensor:
    """All second derivatives by the head's parameters, (5, 5)."""
    return torch.stack([flat_gradient(item, head.parameters()) for item in gradient])


class Fishr:
    """The gradient of each single row by the head, its variance over rows smoothed and corrected as the paper says."""

    def __init__(self) -> None:
        self.smoothed: Tensor | None = None

    def __call__(self, model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
        variances = []
        for x, y in given:
            losses = [error(model, x[[row]], y[[row]]) for row in range(len(y))]
            rows = torch.stack([flat_gradient(loss, model[2].parameters()) for loss in losses])
            assert rows.shape == (6, SIZE)
            variances.append(rows.var(0, correction=0))
        before = 0.0 if self.smoothed is None else self.smoothed
        smoothed = settings["ema"] * before + (1 - settings["ema"]) * torch.stack(variances)
        self.smoothed = smoothed.detach()
        corrected = smoothed / (1 - settings["ema"])
        distances = (corrected - corrected.mean(0)).square().mean(1)
        return mean_error(model, given) + settings["penalty"] * distances.mean()


def mean_error(model: nn.Sequential, given: Environments) -> Tensor:
    return torch.stack([error(model, x, y) for x, y in given]).mean()


def aligned(model: nn.Sequential, given: Environments, settings: dict[str, Any], products: bool) -> Tensor:
    """The gradients of environments aligned, and their Hessians: as products with the gradients, or by their
    diagonals."""
    errors = [error(model, x, y) for x, y in given]
    gradients = [flat_gradient(item, model[2].parameters()) for item in [*errors, torch.stack(errors).mean()]]
    hessians = [hessian(item, model[2]) for item in gradients]
    curved = [h @ g if products else h.diagonal() for h, g in zip(hessians, gradients, strict=True)]
    penalty = torch.zeros((), dtype=torch.float64)
    for own, gradient in zip(curved[:-1], gradients[:-1], strict=True):
        penalty = penalty + settings["hessian"] * (own - curved[-1].detach()).square().sum()
        penalty = penalty + settings["gradient"] * (gradient - gradients[-1].detach()).square().sum()
    return mean_error(model, given) + settings["penalty"] * penalty / len(given)


def test_fishr_aligns_the_variances_of_row_gradients_of_the_squared_error() -> None:
    assert_trains_as(training("fishr", {"penalty": 1e-3, "ema": 0.9}, {"penalty": 0.01, "ema": 0.5}), Fishr)


def test_hgp_aligns_the_products_of_the_squared_errors_hessians_and_gradients() -> None:
    each = ({"hessian": 0.03, "gradient": 0.2}, {"hessian": 0.005, "gradient": 0.5})
    assert_trains_as(training("hgp", *each), lambda: lambda *given: aligned(*given, products=True))


def test_hutchinson_aligns_the_diagonals_of_the_squared_errors_hessians() -> None:
    each = ({"hessian": 0.3, "gradient": 0.02}, {"hessian": 0.05, "gradient": 0.5})
    assert_trains_as(training("hutchinson", *each, samples=0), lambda: lambda *given: aligned(*given, products=False))


def test_hutchinsons_samples_estimate_that_diagonal() -> None:
    """The mean over all 2^4 signs of a 1 x 4 matrix is the estimate's expectation."""
    features = torch.randn(1, 2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    curvature = SquaredErrorCurvature(features[..., :1])
    signs = 2.0 * (torch.arange(16)[:, None] >> torch.arange(4) & 1).double().view(1, 16, 1, 4) - 1
    exact = hutchinson.compute_exact_diagonal(curvature, features)
    torch.testing.assert_close(exact, 2 * features.square().mean(2, keepdim=True))
    torch.testing.assert_close(hutchinson.estimate_diagonal(curvature, features, signs), exact)


def test_a_product_with_the_hessian_is_that_of_the_whole_matrix() -> None:
    drawn = torch.Generator().manual_seed(0)
    features, outputs = (torch.randn(7, size, dtype=torch.float64, generator=drawn) for size in (4, 1))
    directions = torch.randn(3, 1, 4, dtype=torch.float64, generator=drawn)
    weight, labels = torch.randn(1, 4, dtype=torch.float64, generator=drawn), outputs[:, 0]
    full = torch.autograd.functional.hessian(lambda w: (features @ w[0] - labels).square().mean(), weight)
    expected = torch.einsum("aibj,sbj->sai", full, directions)
    torch.testing.assert_close(compute_hessian_products(SquaredErrorCurvature(outputs), features, directions), expected)


@pytest.mark.parametrize("algorithm", ["fishr", "hgp", "hutchinson"])
def test_environments_of_the_same_rows_are_not_penalised(algorithm: str) -> None:
    train = training(algorithm, {})
    [(batch, _)] = train.sampler.batches(0)
    for values in (*batch.inputs, batch.target):
        values[:] = values[:, :6].repeat(1, 3, *[1] * (values.ndim - 2))
    clock = StepState(0, 12, 0, 0, train.stack.keys)
    _, penalty = train.stack.algorithm.terms(train.stack.network, batch, clock)
    assert penalty.tolist() == pytest.approx([0.0], abs=1e-20)
