"""Algorithms that choose which labels to believe: by small losses, by a mixture of losses, by counting; and pruning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms._mixture import FLOOR, ROUNDS, compute_lower_posterior
from farshift.baselines.algorithms._selection import compute_selected_mean
from farshift.baselines.algorithms._transition import estimate_transition
from farshift.baselines.training.sampler import Batch
from farshift.baselines.training.trainer import Training
from farshift.core.errors import ModelError
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from .twelve_rows import CLASSES, ROWS, answered, descend, rows, stack, weights


def test_cores_rewards_confidence_and_sieves_out_rows_whose_label_is_unlikely() -> None:
    each = [{"confidence": 2.0}, {"confidence": 0.7}]
    shared = {"wait_percent": 25, "rise_percent": 50, "sieve_percent": 50}
    data = rows()
    x, label = data.inputs[1], data.target[0]
    prior = np.bincount(label, minlength=CLASSES) / ROWS
    training = Training(stack("cores", [{**item, **shared} for item in each], data), data, 4)
    plain = [weights(training.stack.network, position) for position in range(2)]
    left_out = 0
    for step in range(4):
        training.step()
        for position, item in enumerate(each):
            b = item["confidence"] * (0, 0, 0.5, 1)[step]
            parts = []
            for row, logits in enumerate(answered(plain[position], x)):
                surprise = [-torch.log(p + 1e-8) for p in logits.softmax(0)]
                own = -logits.log_softmax(0)[label[row]]
                if step < 2 or own <= sum(surprise) / CLASSES:
                    parts.append(own - b * sum(share * term for share, term in zip(prior, surprise, strict=True)))
            left_out += ROWS - len(parts)
            loss = sum(parts) / len(parts)
            descend(plain[position], loss)
            torch.testing.assert_close(training.losses[position], loss.detach(), rtol=0, atol=1e-10)
            for ours, theirs in zip(weights(training.stack.network, position), plain[position], strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    assert 0 < left_out < 4 * ROWS
    with pytest.raises(ModelError, match="sieve_percent = 101 of cores"):
        stack("cores", [{"sieve_percent": 101}], data)


def test_the_mean_of_no_row_is_zero_and_pulls_at_nothing() -> None:
    errors = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    batch = Batch(
        (), torch.zeros(2, 3).long(), torch.arange(3).expand(2, -1), weight=torch.tensor([[1.0, 2.0, 1.0]] * 2)
    )
    result = compute_selected_mean(errors, torch.tensor([[False] * 3, [True, True, False]]), batch)
    (gradient,) = torch.autograd.grad(100 * result.sum(), errors)
    assert result.tolist() == [0, 1]
    torch.testing.assert_close(gradient, torch.tensor([[0.0] * 3, [100 / 3, 200 / 3, 0.0]], dtype=torch.float64))


def losses_of_two_kinds() -> Tensor:
    generator = torch.Generator().manual_seed(4)
    low = torch.rand(2, 60, generator=generator, dtype=torch.float64) * 0.3
    high = 0.5 + torch.randn(2, 40, generator=generator, dtype=torch.float64) * torch.tensor([[0.05], [0.2]])
    return torch.cat([low, high], dim=1)


def test_the_mixture_of_losses_is_that_of_scikit_learn_from_the_same_beginning() -> None:
    values = losses_of_two_kinds()
    result = compute_lower_posterior(values)
    for position, row in enumerate(values.numpy()):
        middle = (row.min() + row.max()) / 2
        for _ in range(ROUNDS):
            upper = row > middle
            middle = (row[upper].mean() + row[~upper].mean()) / 2
        parts = [row[~(row > middle)], row[row > middle]]
        model = GaussianMixture(
            2,
            max_iter=ROUNDS,
            tol=0.0,
            reg_covar=FLOOR,
            weights_init=[len(part) / len(row) for part in parts],
            means_init=[[part.mean()] for part in parts],
            precisions_init=[[[1 / (part.var() + FLOOR)]] for part in parts],
            random_state=0,
        )
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(row[:, None])
        expected = model.predict_proba(row[:, None])[:, model.means_.argmin()]
        np.testing.assert_allclose(result[position].numpy(), expected, atol=1e-9)


def test_the_mixture_tells_two_kinds_of_losses_apart_and_bears_equal_ones() -> None:
    result = compute_lower_posterior(losses_of_two_kinds())
    assert ((result[0] > 0.5) == (torch.arange(100) < 60)).all()
    assert torch.isfinite(compute_lower_posterior(torch.full((1, 5), 0.25))).all()


MIX = {"warm_percent": 25, "ramp_percent": 50.0}


def test_dividemix_divides_the_rows_where_training_is_shorter_than_an_epoch() -> None:
    data = rows()
    training = Training(stack("dividemix", [MIX | {"batch_size": 2}], data), data, 4)
    before = training.stack.algorithm.clean.clone()
    training.step()
    assert torch.equal(training.stack.algorithm.clean, before)
    training.step()
    assert not torch.equal(training.stack.algorithm.clean, before)


@pytest.mark.parametrize("name", ["dividemix", "elr_plus"])
def test_an_algorithm_of_two_networks_predicts_with_both(name: str) -> None:
    data = rows()
    built = stack(name, [{}], data)
    built.ready()
    first, second = (answered(weights(some, 0), data.inputs[1]) for some in (built.network.first, built.network.second))
    torch.testing.assert_close(built.answer(*data.inputs)[0], (first + second) / 2, rtol=0, atol=1e-12)


def test_anchors_stand_at_the_weighted_percentile_of_each_class() -> None:
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(2, 50, CLASSES, generator=generator, dtype=torch.float64).softmax(-1)
    weight = torch.randint(1, 4, (1, 50), generator=generator).double()
    result = estimate_transition(p, weight, [97.0, 60.0])
    for position, percentile in enumerate((97, 60)):
        for i in range(CLASSES):
            column = p[position, :, i].numpy()
            at = np.percentile(column, percentile, weights=weight[0].numpy(), method="inverted_cdf")
            assert torch.equal(result[position, i], p[position, int((column == at).argmax())])
    assert torch.equal(estimate_transition(p, weight, [100.0, 100.0])[0, 1], p[0, p[0, :, 1].argmax()])


@pytest.mark.parametrize("name", ["forward_correction", "backward_correction"])
def test_a_correction_learns_plainly_estimates_the_matrix_then_begins_anew(name: str) -> None:
    data = rows()
    training = Training(stack(name, [{"percentile": 90.0}], data, 5), data, 5)
    first = weights(training.stack.network, 0)
    for _ in range(2):
        descend(first, F.cross_entropy(answered(first, data.inputs[1]), data.target[0]))
        training.step()
    p = answered(first, data.inputs[1]).softmax(-1).detach()
    expected = estimate_transition(p[None], data.weight, [90.0])[0]
    torch.testing.assert_close(training.stack.algorithm.transition[0], expected, rtol=0, atol=1e-10)
    second = weights(training.stack.network, 0)
    assert not torch.equal(second[0], first[0])
    training.step()
    logs = answered(second, data.inputs[1]).log_softmax(-1)
    label = data.target[0]
    if name == "forward_correction":
        loss = -(logs.exp() @ expected)[torch.arange(ROWS), label].log().mean()
    else:
        loss = -(torch.linalg.inv(expected)[label] * logs).sum(-1).mean()
    assert float(training.losses) == pytest.approx(loss.item(), abs=1e-8)
