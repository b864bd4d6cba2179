"""EIIL: environments inferred from a plain network's errors, and invariance across them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.eiil import optimise_assignment
from farshift.baselines.algorithms.irm import compute_slopes
from torch import Tensor

from .small_stacks import PLAIN, batch_of, begun, encode, head, moved_along, rows, weights

SHORT = {"assignment_steps": 50, "assignment_rate": 0.1, "first_percent": 50}


def test_rows_that_rely_on_the_spurious_feature_are_told_from_those_that_defy_it() -> None:
    """Labels agree with the only input for four rows of five: a network that trusts it splits the rows by whether they
    do."""
    agrees = torch.arange(200) % 5 != 0
    target = torch.arange(200) % 2
    sign = torch.where(agrees, 1.0, -1.0) * (2.0 * target - 1)
    logits = torch.stack([-sign, sign], dim=1)[None].double()
    start = 0.01 * torch.randn(1, 200, generator=torch.Generator().manual_seed(1)).double()
    result = (
        optimise_assignment(compute_slopes(logits, target[None]), start, 2000, torch.tensor([0.01]).double())[0] > 0
    )
    assert len(set(result[agrees].tolist())) == len(set(result[~agrees].tolist())) == 1
    assert result[agrees][0] != result[~agrees][0]


def irm(w: dict[str, Tensor], x: Tensor, y: Tensor, second: Tensor, penalty: float) -> Tensor:
    risks, squares = [], []
    for own in (~second, second):
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        if not own.any():
            risks.append(torch.zeros(()).double())
            squares.append(torch.zeros(()).double())
            continue
        risk = F.cross_entropy(scale * head(w, encode(w, x[own])), y[own])
        risks.append(risk)
        squares.append(torch.autograd.grad(risk, scale, create_graph=True)[0] ** 2)
    return torch.stack(risks).mean() + penalty * torch.stack(squares).mean()


@pytest.mark.parametrize("batch_size", [0, 5])
def test_after_plain_training_a_fresh_network_is_trained_by_irm_on_the_inferred_environments(batch_size: int) -> None:
    each = ({"penalty": 2.0}, {"penalty": 7.0})
    built = begun("eiil", *each, common=PLAIN | SHORT | {"batch_size": batch_size, "anneal_percent": 0}, steps=6)
    assert built.stages == (3, 3)
    for step in range(6):
        batch, before = batch_of(built), [weights(built, replica) for replica in range(2)]
        second = built.stack.algorithm.second
        losses = []
        for k, (w, own) in enumerate(zip(before, each, strict=True)):
            x, y = batch.inputs[1][k], batch.target[k]
            plain = F.cross_entropy(head(w, encode(w, x)), y)
            losses.append(plain if step < 3 else irm(w, x, y, second[k][batch.rows[k]], own["penalty"]))  # type: ignore[index]
        built.step()
        if step != 2:
            assert moved_along(built, before, losses), step
    assert second.any(1).all() and not second.all(1).any(), "both environments have rows"  # type: ignore[operator]
    assert len(rows()) == second.shape[1]
