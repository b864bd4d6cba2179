"""Measures by layer and PAC-Bayes measures, against closed forms, brute force and SciPy."""

import math

import numpy as np
import pytest
import torch
from farshift.baselines.diagnostics import (
    NotApplicable,
    layer_divergence,
    layer_information,
    pac_bayes,
    sharpness,
)
from farshift.baselines.diagnostics._subject import Subject
from scipy import stats

from .trained_replicas import NAMES, mlp, numbers, plain


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_layers_are_what_the_hidden_layers_pass_on_and_the_last_the_features():
    subject = mlp(numbers(), depth=2)
    network = subject.stack.network
    first = torch.relu(network.hidden[0](subject.data.inputs[1].expand(3, -1, -1)))
    torch.testing.assert_close(subject.layers[0], first.detach())
    torch.testing.assert_close(subject.layers[1], subject.features)
    assert len(subject.layers) == 2
    other = numbers(rows=7, seed=5)
    torch.testing.assert_close(
        subject.compute_layers(other)[1], Subject(subject.stack, other, "classification").features
    )


def test_kernels_and_bins_see_all_of_a_few_far_points_and_the_class_s_share():
    """Four places, each class at two of them: I(X; T) = log 4 and I(X; T | Y) = log 2."""
    places = torch.tensor([[0.0], [1.0], [2.0], [4.0]], dtype=torch.float64).repeat(5, 1)[None]
    classes = torch.tensor([0, 0, 1, 1]).repeat(5)
    for estimate, change in (
        (layer_information.bound_information, layer_information.blur),
        (layer_information.compute_entropy, layer_information.bin_adaptively),
    ):
        total, within = layer_information.measure_information(estimate, change(places), classes)
        assert total.item() == pytest.approx(math.log(4), abs=1e-3)
        assert within.item() == pytest.approx(math.log(2), abs=1e-3)


def test_the_kernels_bound_is_that_of_a_loop_and_above_the_information_of_a_gaussian_channel():
    values = 2 * normal(1, 600, 1)
    result = layer_information.bound_information(values).item()
    row = values[0, :, 0].numpy()
    loop = -np.mean([math.log(np.mean(np.exp(-((a - row) ** 2) / 2))) for a in row])
    assert result == pytest.approx(loop, rel=1e-10)
    assert 0.5 * math.log(1 + 4) < result < 0.5 * math.log(1 + 4) + 0.5


def test_adaptive_bins_do_not_see_a_monotone_change_and_hold_equally_many_values():
    values = normal(1, 90, 1)
    binned = layer_information.bin_adaptively(values)
    assert torch.bincount(binned.flatten()).tolist() == [3] * layer_information.BINS
    assert torch.equal(binned, layer_information.bin_adaptively(values.exp()))
    assert layer_information.compute_entropy(binned).item() == pytest.approx(math.log(layer_information.BINS))


def test_the_wasserstein_distance_of_samples_on_a_line_is_scipy_s():
    x, y = normal(2, 40, 1), 3 + 2 * normal(2, 40, 1, seed=1)
    for own, other, result in zip(x, y, layer_divergence.compute_wasserstein(x, y), strict=True):
        expected = stats.wasserstein_distance(own[:, 0], other[:, 0]) / own.std(correction=0)
        assert result.item() == pytest.approx(expected.item(), rel=1e-10)


def test_the_divergence_of_gaussians_is_the_closed_form_and_zero_for_equal_samples():
    x, y = normal(1, 20_000, 2), 0.5 + 2 * normal(1, 20_000, 2, seed=1)
    expected = 2 * 0.5 * (1 / 4 + 0.25 / 4 - 1 + math.log(4))
    assert layer_divergence.compute_gaussian_kl(x, y).item() == pytest.approx(expected, rel=0.02)
    assert layer_divergence.compute_gaussian_kl(x, x).item() == pytest.approx(0, abs=1e-12)


def test_divergences_need_validation_rows_and_are_the_least_over_layers():
    subject = mlp(numbers(rows=30), depth=2)
    with pytest.raises(NotApplicable, match="no validation rows"):
        layer_divergence.measure(subject)
    shifted = numbers(rows=20, seed=3)
    result = layer_divergence.measure(Subject(subject.stack, subject.data, "classification", shifted))
    for name in ("wasserstein", "kl"):
        least = torch.minimum(result[f"{name}_1"], result[f"{name}_2"])
        assert torch.equal(result[name], least)
    same = layer_divergence.measure(Subject(subject.stack, subject.data, "classification", subject.data))
    assert same["wasserstein"].abs().max() < 1e-12


def learn(subject):
    """Make the labels those that the first replica gives, so that it has no errors."""
    with torch.no_grad():
        subject.data.target[0].copy_(subject.logits()[0].argmax(1))


def test_sigma_is_where_noise_costs_a_tenth_of_the_accuracy(monkeypatch):
    monkeypatch.setattr(pac_bayes, "DRAWS", 40)
    subject = mlp(numbers(rows=60), names=NAMES[:1])
    learn(subject)
    weights = [parameter.detach().clone() for parameter in subject.parameters]
    sigma, errors = pac_bayes.find_sigma(subject, weights, torch.zeros(1, dtype=torch.float64), 0.0)
    assert all(torch.equal(a, b) for a, b in zip(weights, subject.parameters, strict=True))
    drawn, wrong = torch.Generator().manual_seed(1), []
    for _ in range(300):
        model = plain(subject, 0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += sigma * torch.randn(parameter.shape, generator=drawn, dtype=torch.float64)
            wrong.append((model(subject.data.inputs[1]).argmax(1) != subject.classes).double().mean())
    assert 0 < sigma.item() < 2
    assert torch.stack(wrong).mean().item() == pytest.approx(0.1, abs=0.05)
    assert errors.item() <= 0.1


def test_pac_bayes_measures_are_their_formulas_of_sigma_and_the_way_from_the_initial_weights():
    subject = mlp(numbers(rows=60))
    learn(subject)
    before = torch.cat([parameter.detach().flatten(1) for parameter in subject.parameters], 1)
    with torch.no_grad():
        for parameter in subject.parameters:
            parameter.add_(0.1)
    result = pac_bayes.measure(subject)
    sigma, count = result["flatness"] ** -0.5, before.shape[1]
    way = count * 0.01
    expected = way / (4 * sigma**2) + (60 / sigma).log() + 10
    torch.testing.assert_close(result["init"], expected)
    norm = (before + 0.1).square().sum(1)
    torch.testing.assert_close(result["orig"], norm / (4 * sigma**2) + (60 / sigma).log() + 10)
    own = result["mag_flatness"] ** -0.5
    ratio = (1e-6 + (own**2 + 1) * 0.01) / (1e-6 + own**2 * 0.01)
    torch.testing.assert_close(result["mag_init"], count * ratio.log() / 4 + (60 / own).log() + 10)
    assert (result["bound"] <= 1).all()


def test_the_bound_is_the_inverse_of_the_divergence_and_vanishes_with_its_budget():
    error, budget = torch.tensor([0.0, 0.1, 0.3, 0.2]).double(), torch.tensor([0.7, 0.0, 0.2, 50.0]).double()
    p = pac_bayes.invert_kl(error, budget)
    assert p[0].item() == pytest.approx(1 - math.exp(-0.7))
    assert p[1].item() == pytest.approx(0.1, abs=1e-6)
    assert stats.entropy([0.3, 0.7], [p[2].item(), 1 - p[2].item()]) == pytest.approx(0.2)
    assert p[3].item() == pytest.approx(1)


def test_the_sharpness_of_a_layer_is_the_mean_rise_if_only_its_weights_move(monkeypatch):
    monkeypatch.setattr(sharpness, "DRAWS", 300)
    subject = mlp(numbers(), names=NAMES[:1])
    result = sharpness.measure(subject)
    assert result["layer_most"].item() == max(result["layer_1"].item(), result["layer_2"].item())
    inputs, target = subject.data.inputs[1], subject.classes
    cross_entropy, drawn = torch.nn.functional.cross_entropy, torch.Generator().manual_seed(2)
    still, rises = cross_entropy(plain(subject, 0)(inputs), target), []
    for _ in range(300):
        model = plain(subject, 0)
        with torch.no_grad():
            for parameter in model[2].parameters():
                parameter *= 1 + 0.1 * torch.randn(parameter.shape, generator=drawn, dtype=torch.float64)
            rises.append(cross_entropy(model(inputs), target) - still)
    rises = torch.stack(rises)
    assert result["layer_2"].item() == pytest.approx(rises.mean().item(), abs=6 * rises.std().item() * (2 / 300) ** 0.5)
