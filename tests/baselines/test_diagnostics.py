"""What is measured of trained replicas through their gradients, against plain loops and closed forms."""

from __future__ import annotations

import math

import pytest
import torch
from farshift.baselines.diagnostics import (
    _subject,
    coherence,
    diagnose_stack,
    environment_gradients,
    list_diagnostics,
    sharpness,
    vendi,
)
from farshift.baselines.diagnostics._subject import Subject
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.replicas.stacked import select_replicas
from torch import nn

from .trained_replicas import NAMES, mlp, numbers, plain, row_gradients, stack, texts


@pytest.mark.parametrize("held", [10_000, 150])
def test_the_gradients_of_rows_are_those_of_a_plain_loop_however_many_are_held_at_once(held, monkeypatch):
    monkeypatch.setattr(_subject, "HELD_VALUES", held)
    subject = mlp(numbers())
    for replica in range(3):
        ours = torch.cat(list(subject.row_gradients(replica)))
        torch.testing.assert_close(ours, row_gradients(subject, replica), rtol=1e-12, atol=1e-12)
    assert subject.held_rows == (12 if held == 10_000 else 3)


def test_gradients_of_texts_are_those_of_a_replica_that_is_given_one_text():
    data = texts()
    subject = Subject(stack("lstm", data, Sizes(8, source=8), width=6, dropout=0.5), data, "sequence")
    ours = torch.cat(list(subject.row_gradients(1)))
    alone = select_replicas(subject.stack.network, [1])
    for row, (source, target) in enumerate(zip(*data.inputs, strict=True)):
        real = int(data.lengths[row])
        logits = alone(source[None, None], target[None, None, :real])[0, 0]
        loss = nn.functional.cross_entropy(logits, target[:real])
        expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(alone.parameters()))])
        torch.testing.assert_close(ours[row], expected, rtol=1e-10, atol=1e-12)


def test_coherence_is_the_squared_mean_gradient_over_the_mean_squared():
    subject = mlp(numbers())
    result = coherence.measure(subject)
    for replica in range(3):
        g = row_gradients(subject, replica)
        expected = g.mean(0).square().sum() / g.square().sum(1).mean()
        assert result["alpha"][replica].item() == pytest.approx(expected.item(), rel=1e-12)
        assert result["rows_helped"][replica].item() == pytest.approx(12 * expected.item(), rel=1e-12)


class Given:
    """A subject whose rows have the gradients given, (K, n, parameters)."""

    def __init__(self, gradients):
        self.gradients, self.replicas = gradients, len(gradients)

    def __len__(self):
        return self.gradients.shape[1]

    def row_gradients(self, replica):
        return self.gradients[replica].split(2)


def test_identical_gradients_cohere_wholly_and_orthogonal_ones_by_one_row():
    eye = torch.eye(5, dtype=torch.float64)
    result = coherence.measure(Given(torch.stack([eye[:1].expand(5, 5), eye, 0 * eye])))
    assert result["alpha"].tolist()[:2] == pytest.approx([1.0, 0.2])
    assert result["rows_helped"].tolist()[:2] == pytest.approx([5.0, 1.0])
    assert math.isnan(result["alpha"][2])


def test_the_vendi_score_counts_directions():
    eye = torch.eye(5, dtype=torch.float64)
    pairs = torch.stack([eye[0], 3 * eye[0], eye[1], 2 * eye[1], eye[1] * 0])
    result = vendi.measure(Given(torch.stack([eye[:1].expand(5, 5), eye, pairs, 0 * eye])))["score"].tolist()
    assert result[:3] == pytest.approx([1.0, 5.0, 2.0])
    assert math.isnan(result[3])


def test_the_vendi_score_is_the_exponential_of_the_kernel_s_entropy(monkeypatch):
    monkeypatch.setattr(_subject, "HELD_VALUES", 150)
    subject = mlp(numbers())
    result = vendi.measure(subject)["score"]
    for replica in range(3):
        unit = nn.functional.normalize(row_gradients(subject, replica))
        spectrum = torch.linalg.svdvals(unit).square() / 12
        spectrum = spectrum[spectrum > 1e-14]
        expected = math.exp(-(spectrum * spectrum.log()).sum())
        assert result[replica].item() == pytest.approx(expected, rel=1e-8)


def test_environment_gradients_are_compared_by_the_mean_cosine_of_their_pairs():
    subject = mlp(numbers(groups=4))
    result = environment_gradients.measure(subject)
    for replica in range(3):
        rows = row_gradients(subject, replica)
        each = [rows[subject.data.group == item].mean(0) for item in range(4)]
        pairs = [nn.functional.cosine_similarity(a, b, dim=0) for n, a in enumerate(each) for b in each[:n]]
        assert result["cosine"][replica].item() == pytest.approx(float(torch.stack(pairs).mean()), rel=1e-10)
    assert result["environments"].tolist() == [4, 4, 4]


def shifted_losses(subject, replica, shares):
    """The mean loss of a plain model whose weights are w + |w| d."""
    model = plain(subject, replica)
    with torch.no_grad():
        for parameter, share in zip(model.parameters(), shares, strict=True):
            parameter += parameter.abs() * share
        return nn.functional.cross_entropy(model(subject.data.inputs[1]), subject.data.target[0])


def test_average_sharpness_is_the_mean_rise_over_moves_in_proportion_to_the_weights(monkeypatch):
    monkeypatch.setattr(sharpness, "DRAWS", 300)
    subject = mlp(numbers(), names=NAMES[:1])
    result = sharpness.measure(subject)["average"].item()
    drawn = torch.Generator().manual_seed(0)
    rises = []
    for _ in range(300):
        shares = [
            0.1 * torch.randn(p.shape, generator=drawn, dtype=torch.float64) for p in plain(subject, 0).parameters()
        ]
        rises.append(shifted_losses(subject, 0, shares))
    still = shifted_losses(subject, 0, [0.0] * 4)
    rises = torch.stack(rises) - still
    assert result == pytest.approx(rises.mean().item(), abs=6 * rises.std().item() * (2 / 300) ** 0.5)


def test_worst_sharpness_is_above_any_random_move_of_its_radius_and_the_first_order_one():
    subject = mlp(numbers())
    result = sharpness.measure(subject)["worst"]
    for replica in range(3):
        model = plain(subject, replica)
        loss = nn.functional.cross_entropy(model(subject.data.inputs[1]), subject.data.target[0])
        slopes = torch.autograd.grad(loss, list(model.parameters()))
        uphill = [g * p.detach().abs() for g, p in zip(slopes, model.parameters(), strict=True)]
        norm = torch.cat([item.flatten() for item in uphill]).norm()
        first = shifted_losses(subject, replica, [sharpness.RHO * item / norm for item in uphill]) - loss
        assert result[replica] >= first - 1e-12 > 0
        drawn = torch.Generator().manual_seed(replica)
        for _ in range(50):
            move = [torch.randn(p.shape, generator=drawn, dtype=torch.float64) for p in model.parameters()]
            norm = torch.cat([item.flatten() for item in move]).norm()
            moved = shifted_losses(subject, replica, [sharpness.RHO * item / norm for item in move])
            assert moved - loss <= result[replica]


def test_adaptive_sharpness_does_not_see_a_rescaling_that_leaves_the_function():
    subject = mlp(numbers(), names=NAMES[:1])
    before = sharpness.measure(subject)
    network = subject.stack.network
    with torch.no_grad():
        network.hidden[0].weight *= 7
        network.hidden[0].bias *= 7
        network.head.weight /= 7
    after = sharpness.measure(subject)
    for name in ("average", "worst"):
        assert after[name].item() == pytest.approx(before[name].item(), rel=1e-9)


def test_a_replica_is_diagnosed_alike_alone_and_among_others():
    data = numbers(rows=40)
    every = diagnose_stack(mlp(data).stack, data, "classification", "toy/toy", list_diagnostics())
    for replica, name in enumerate(NAMES):
        alone = diagnose_stack(mlp(data, names=(name,)).stack, data, "classification", "toy/toy", list_diagnostics())[0]
        assert alone.keys() == every[replica].keys()
        for what, value in alone.items():
            assert every[replica][what] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-9)), what


def test_diagnosing_leaves_the_replicas_as_they_were():
    data = numbers(rows=40)
    built = mlp(data).stack
    before = [parameter.detach().clone() for parameter in built.parameters()]
    answers = built.answer(*data.inputs)
    diagnose_stack(built, data, "classification", "toy/toy", list_diagnostics())
    assert all(torch.equal(a, b) for a, b in zip(before, built.parameters(), strict=True))
    assert torch.equal(built.answer(*data.inputs), answers)
