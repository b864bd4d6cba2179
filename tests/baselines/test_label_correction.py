"""Algorithms that remember what the network believed of each row, and trust a label less where it disagrees."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .twelve_rows import CLASSES, ROWS, Weights, answered, descend, rows, stack, weights

NAMES = "elr", "sop", "ps_kd"


class Followed:
    """A training of two replicas, and the weights that a plain optimiser step of each has."""

    def __init__(self, algorithm: str, each: list[dict[str, float]], steps: int = 4) -> None:
        self.data = rows()
        self.training = Training(stack(algorithm, each, self.data, steps), self.data, steps)
        self.plain = [weights(self.training.stack.network, position) for position in range(len(each))]
        self.x, self.label = self.data.inputs[1], self.data.target[0]
        self.hot = F.one_hot(self.label, CLASSES).double()

    def logits(self, place: int) -> Tensor:
        return answered(self.plain[place], self.x)

    def follow(self, losses: list[Tensor]) -> None:
        """Descend each replica's loss, and compare what came of it."""
        for position, loss in enumerate(losses):
            descend(self.plain[position], loss)
            torch.testing.assert_close(self.training.losses[position], loss.detach(), rtol=0, atol=1e-10)
            self.compare(position)

    def compare(self, place: int) -> None:
        result: Weights = weights(self.training.stack.network, place)
        for ours, theirs in zip(result, self.plain[place], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def plain_sop(logits: Tensor, hot: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Both losses of sparse over-parameterisation, row by row from the definition."""
    entropies, squares = [], []
    for score, label, own, others in zip(logits, hot, u, v, strict=True):
        p = score.softmax(-1)
        up, down = (square.clamp(max=1) for square in (own**2 * label, others**2 * (1 - label)))
        q = (p + up - down.detach()).clamp(min=1e-4)
        q = (q / q.sum()).clamp(min=1e-4)
        entropies.append(-(label * q.log()).sum())
        chosen = F.one_hot(p.argmax(), CLASSES).double()
        squares.append((chosen + up - down - label).square().sum())
    return torch.stack(entropies).mean(), torch.stack(squares).mean()


def test_sparse_over_parameterisation_is_its_formula_also_in_u_and_v() -> None:
    each = [{"u_lr": 10.0, "v_lr": 3.0}, {"u_lr": 1.0, "v_lr": 10.0}]
    case = Followed("sop", each)
    algorithm = case.training.stack.algorithm
    algorithm.u += 0.1  # large enough that its part in the loss is seen
    algorithm.v += 0.1
    u, v = algorithm.u.clone(), algorithm.v.clone()
    for _ in range(4):
        case.training.step()
        losses = []
        for position, own in enumerate(each):
            of_u, of_v = u[position].requires_grad_(), v[position].requires_grad_()
            entropy, square = plain_sop(case.logits(position), case.hot, of_u, of_v)
            (fall,) = torch.autograd.grad(entropy, of_u, retain_graph=True)
            (drop,) = torch.autograd.grad(square, of_v, retain_graph=True)
            losses.append(entropy + square.detach())
            u = u.detach().clone()
            v = v.detach().clone()
            u[position] -= own["u_lr"] * fall
            v[position] -= own["v_lr"] * drop
        case.follow(losses)
        torch.testing.assert_close(algorithm.u, u, rtol=0, atol=1e-10)
        torch.testing.assert_close(algorithm.v, v, rtol=0, atol=1e-10)
    assert not torch.equal(u[0], u[1])


def test_a_row_drawn_twice_in_a_batch_gets_the_sum_of_its_gradients_in_u() -> None:
    data = rows()
    weight = torch.zeros(1, ROWS, dtype=torch.float64)
    weight[0, 3] = 1
    alone = Data(data.inputs, data.target, data.lengths, weight)
    built = [Training(stack("sop", [{"batch_size": size}], alone, 1, names=["a"]), alone, 1) for size in (1, 4)]
    for training in built:
        training.stack.algorithm.u += 0.1
        training.step()
    torch.testing.assert_close(built[0].stack.algorithm.u, built[1].stack.algorithm.u, rtol=0, atol=1e-12)
    assert built[0].stack.algorithm.u[0, 3] != pytest.approx(0.1)


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_of_the_rows_that_were_drawn(name: str) -> None:
    data = rows()
    training = Training(stack(name, [{"batch_size": 3}] * 2, data), data, 4)
    table = {"elr": "believed", "sop": "v", "ps_kd": "past"}[name]
    before = getattr(training.stack.algorithm, table).clone()
    drawn = training.sampler.batch(0).rows
    training.step()
    moved = (getattr(training.stack.algorithm, table) != before).any(-1)
    for position in range(2):
        assert moved[position].nonzero()[:, 0].tolist() == sorted(drawn[position].tolist())
