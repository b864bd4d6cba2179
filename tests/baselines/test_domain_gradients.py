"""Algorithms that look at environments' gradients: the papers' formulas, for every replica with its own settings."""

from __future__ import annotations

import pytest
import torch
from farshift.baselines.algorithms import and_mask, hutchinson, sand_mask
from farshift.baselines.algorithms._head import SoftmaxCurvature


def test_the_estimate_over_all_signs_is_the_hessians_diagonal() -> None:
    """The mean over all 2^6 signs of a 3 x 2 matrix is the estimate's expectation."""
    drawn = torch.Generator().manual_seed(0)
    features = torch.randn(1, 2, 5, 2, dtype=torch.float64, generator=drawn)
    curvature = SoftmaxCurvature(torch.randn(1, 2, 5, 3, dtype=torch.float64, generator=drawn).softmax(-1))
    signs = 2.0 * (torch.arange(64)[:, None] >> torch.arange(6) & 1).double().view(1, 64, 3, 2) - 1
    exact = hutchinson.compute_exact_diagonal(curvature, features)
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
