"""Meta-learning for compositional generalisation: a step on a batch must help with rows that share its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from farshift.baselines.algorithms.meta_compositional import spectrum_kernel
from torch import Tensor
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from .small_sequences import alone, batch, check_alike, clock, risk, training

EACH = [{"inner_lr": 0.3, "meta_weight": 1.0}, {"inner_lr": 0.05, "meta_weight": 0.5}]


def counted(ids: Sequence[int], grams: int) -> Counter[tuple[int, ...]]:
    real = [item for item in ids if item]
    sizes = range(1, grams + 1)
    return Counter(
        tuple(real[position : position + size]) for size in sizes for position in range(len(real) - size + 1)
    )


@pytest.mark.parametrize("grams", [1, 2, 3, 9])
def test_the_kernel_is_the_cosine_of_counted_n_grams(grams: int) -> None:
    torch.manual_seed(0)
    a, b = torch.randint(4, 7, (2, 3, 6)), torch.randint(4, 7, (2, 5, 4))
    a[:, 1, 2:], a[:, 2, :], b[:, 3, 1:] = 0, 0, 0
    result = spectrum_kernel(a, b, grams)
    for k in range(2):
        for i in range(3):
            for j in range(5):
                x, y = (counted(side.tolist(), grams) for side in (a[k, i], b[k, j]))
                dot = sum(x[gram] * y[gram] for gram in x)
                norm = (sum(n * n for n in x.values()) * sum(n * n for n in y.values())) ** 0.5
                assert float(result[k, i, j]) == pytest.approx(dot / norm if norm else 0.0, abs=1e-12)


def test_meta_test_rows_are_like_their_rows_the_more_the_colder() -> None:
    alike = []
    for temperature in (10.0, 0.1, 0.01):
        built = training("transformer", "meta_compositional", [{"temperature": temperature, "batch_size": 400}])
        drawn = batch(built)
        result = built.stack.algorithm.similar(drawn, clock(built))  # type: ignore[operator]
        assert not (result.rows == drawn.rows).any(), "never the row itself"
        source = built.data.inputs[0]
        kernel = spectrum_kernel(source[drawn.rows[0]][None], source[result.rows[0]][None], 3)[0]
        alike.append(float(kernel.diagonal().mean()))
    assert alike[0] < alike[1] < alike[2]


def test_meta_test_rows_are_drawn_from_the_softmax_of_the_kernel() -> None:
    own = {"temperature": 0.5, "batch_size": 3600, "pool_rows": 500}
    built = training("transformer", "meta_compositional", [own])
    drawn = batch(built)
    result = built.stack.algorithm.similar(drawn, clock(built)).rows[0]  # type: ignore[operator]
    source = built.data.inputs[0][None]
    scores = spectrum_kernel(source[:, :1], source, 3)[0, 0] / 0.5
    scores[0] = -torch.inf
    ours = torch.bincount(result[drawn.rows[0] == 0], minlength=36) / 100
    torch.testing.assert_close(ours.double(), scores.softmax(0), rtol=0, atol=0.08)


def meta_loss(network: Any, train: Sequence[Tensor], test: Sequence[Tensor], own: Any, second: bool) -> Tensor:
    """L(theta) + w L(theta - a grad L(theta)) of one replica, each pair being the source and the target of a batch."""
    parameters = dict(network.named_parameters())
    loss = risk(network(*train), train[1][0])
    gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
    moved = {
        name: parameter - own["inner_lr"] * (gradient if second else gradient.detach())
        for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True)
    }
    after: Tensor = risk(functional_call(network, moved, tuple(test)), test[1][0])
    return loss + own["meta_weight"] * after


@pytest.mark.parametrize("network", ["transformer", "lstm"])
@pytest.mark.parametrize("second", [False, True], ids=["first order", "second order"])
def test_a_step_is_that_of_the_papers_objective_in_each_replica(network: str, second: bool) -> None:
    built = training(network, "meta_compositional", [own | {"second_order": second} for own in EACH], 3)
    for _ in range(2):
        before, drawn = [alone(built.stack.network, position) for position in range(2)], batch(built)
        test = built.stack.algorithm.similar(drawn, clock(built))  # type: ignore[operator]
        built.step()
        for position, plain in enumerate(before):
            pairs = [[x[position : position + 1] for x in item.inputs] for item in (drawn, test)]
            with sdpa_kernel(SDPBackend.MATH):
                loss = meta_loss(plain, *pairs, EACH[position], second)
                gradients = torch.autograd.grad(loss, list(plain.parameters()))
            torch.testing.assert_close(built.losses[position], loss.detach(), rtol=0, atol=1e-10)
            with torch.no_grad():
                for p, g in zip(plain.parameters(), gradients, strict=True):
                    p -= 0.5 * g
            check_alike(alone(built.stack.network, position), plain, 1e-10)


def test_without_an_inner_step_it_is_the_loss_of_both_batches() -> None:
    built = training("lstm", "meta_compositional", [{"inner_lr": 0.0}])
    drawn, network = batch(built), built.stack.network
    test = built.stack.algorithm.similar(drawn, clock(built))  # type: ignore[operator]
    expected = sum(risk(network(*item.inputs), item.target[0]) for item in (drawn, test))
    torch.testing.assert_close(
        built.stack.algorithm.loss(network, drawn, clock(built))[0], expected, rtol=0, atol=1e-12
    )
