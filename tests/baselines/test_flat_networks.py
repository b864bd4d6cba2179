"""Networks of one linear map and of squared units are what their equations say, for each replica."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.networks import linear, quadratic_mlp
from farshift.baselines.replicas.stacked import count_parameters
from farshift.core.errors import ModelError
from sklearn.linear_model import LogisticRegression

from .side_by_side import agrees, built, trained

MIXED = Sizes(3, (4, 2), 5)
PAIRS = Sizes(7, (7, 6))


def mixed(replicas: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    fields = [torch.randint(0, values, (replicas, rows), generator=draw) for values in MIXED.categories]
    return torch.stack(fields, dim=-1), torch.randn(replicas, rows, 5, generator=draw, dtype=torch.float64)


def pairs(replicas: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, 6, (replicas, rows, 2), generator=torch.Generator().manual_seed(0))
    return ids, torch.zeros(replicas, rows, 0, dtype=torch.float64)


def test_softmax_regression_starts_at_even_odds() -> None:
    logits = linear.Network(MIXED, linear.SETTINGS).double()(*mixed(1, 4))
    assert torch.equal(logits, torch.zeros(1, 4, 3, dtype=torch.float64))


def test_softmax_regression_trained_to_the_end_is_scikit_learns() -> None:
    categories, numbers = mixed(1, 60)
    target = torch.randint(0, 3, (1, 60), generator=torch.Generator().manual_seed(5))
    network = built(lambda: linear.Network(MIXED, linear.SETTINGS), 1)
    x = network.embed(categories, numbers)
    optimiser = torch.optim.LBFGS(network.parameters(), max_iter=200, tolerance_grad=1e-10, tolerance_change=0)

    def loss() -> Any:
        optimiser.zero_grad()
        total = F.cross_entropy(network(categories, numbers)[0], target[0], reduction="sum")
        total = total + network.head.weight.square().sum() / 2
        total.backward()
        return total

    optimiser.step(loss)
    expected = LogisticRegression(tol=1e-10, max_iter=10_000).fit(x[0].numpy(), target[0].numpy())
    result = network(categories, numbers)[0].softmax(dim=-1).detach().numpy()
    assert np.abs(result - expected.predict_proba(x[0].numpy())).max() < 1e-5


def test_the_quadratic_network_is_two_products_with_one_hot_rows() -> None:
    network = built(lambda: quadratic_mlp.Network(PAIRS, {"width": 11}), 3)
    ids, empty = pairs(3, 20)
    hot = torch.cat([F.one_hot(ids[..., 0], 7), F.one_hot(ids[..., 1], 6)], dim=-1).double()
    expected = (hot @ network.into.weight).square() @ network.head.weight.transpose(1, 2)
    assert torch.allclose(network(ids, empty), expected, rtol=0, atol=1e-14)


def test_the_quadratic_networks_weights_are_those_of_the_paper() -> None:
    torch.manual_seed(0)
    network = quadratic_mlp.Network(Sizes(97, (97, 97)), quadratic_mlp.SETTINGS)
    for weight in network.parameters():
        assert weight.std().item() == pytest.approx(0.5 / 1000 ** (1 / 3), rel=0.02)
        assert weight.mean().item() == pytest.approx(0, abs=0.002)
    assert count_parameters(network) == 500 * 3 * 97


def test_the_quadratic_network_refuses_numbers() -> None:
    for other in (Sizes(2, numbers=4), Sizes(2, (3, 3), 1)):
        with pytest.raises(ModelError, match="categories only"):
            quadratic_mlp.Network(other, quadratic_mlp.SETTINGS)


MAKERS = {
    "linear": (lambda: linear.Network(MIXED, linear.SETTINGS), mixed),
    "quadratic_mlp": (lambda: quadratic_mlp.Network(PAIRS, {"width": 11}), pairs),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_flat_network_is_its_head_on_its_features(name: str) -> None:
    make, inputs = MAKERS[name]
    assert agrees(built(make, 2), *inputs(2, 9))


def test_the_quadratic_network_learns_a_table_of_addition() -> None:
    a, b = torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij")
    ids = torch.stack([a.flatten(), b.flatten()], dim=-1)[None]
    network = built(lambda: quadratic_mlp.Network(PAIRS, {"width": 60}), 1)
    target = ids.sum(dim=-1) % 7
    empty = torch.zeros(1, 36, 0, dtype=torch.float64)
    trained(network, (ids, empty), target, ["a"], 300)
    assert torch.equal(network(ids, empty).argmax(dim=-1), target)
