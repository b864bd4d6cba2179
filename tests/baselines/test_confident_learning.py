"""Confident learning counts and prunes as its definition does, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import confident_learning as cl
from farshift.baselines.replicas.rng import make_keys
from farshift.baselines.training.trainer import Training
from numpy.typing import NDArray
from torch import Tensor

from .twelve_rows import CLASSES, ROWS, answered, descend, rows, stack, weights

Table = NDArray[np.float64]


def by_hand(p: Table, given: list[int]) -> tuple[Table, Table, list[float]]:
    """The confident joint, the joint distribution, and what each row weighs (0: pruned)."""
    count, classes = p.shape
    of = [[row for row in range(count) if given[row] == j] for j in range(classes)]
    threshold = [np.mean([p[row, j] for row in of[j]]) if of[j] else np.inf for j in range(classes)]
    joint = np.zeros((classes, classes))
    for row in range(count):
        sure = [j for j in range(classes) if p[row, j] >= threshold[j]]
        if sure:
            joint[given[row], max(sure, key=lambda j: p[row, j])] += 1
    q = np.zeros_like(joint)
    for i in range(classes):
        if joint[i].sum():
            q[i] = joint[i] / joint[i].sum() * len(of[i]) / count
        else:
            q[i, i] = len(of[i]) / count
    gone: set[int] = set()
    for i in range(classes):
        for j in range(classes):
            if i != j:
                by_margin = sorted(of[i], key=lambda row: p[row, i] - p[row, j])
                gone |= set(by_margin[: round(count * q[i, j])])
    weight = [0.0 if row in gone else q[:, i].sum() / q[i, i] for row, i in enumerate(given)]
    return joint, q, weight


def some_probabilities(count: int = 60, classes: int = 4) -> tuple[Tensor, Tensor]:
    """Of two replicas: a network that is often right about the true class, and labels of which some are wrong."""
    built = torch.Generator().manual_seed(3)
    true = torch.randint(classes, (2, count), generator=built)
    given = torch.where(torch.rand(2, count, generator=built) < 0.3, (true + 1) % classes, true)
    logits = 2.0 * F.one_hot(true, classes) + torch.randn(2, count, classes, generator=built, dtype=torch.float64)
    return logits.softmax(-1), given


def test_the_joint_the_pruned_rows_and_the_weights_are_those_of_a_loop() -> None:
    p, given = some_probabilities()
    for position in range(2):
        joint, q, weight = by_hand(p[position].numpy(), given[position].tolist())
        assert cl.compute_confident_joint(p, given)[position].tolist() == joint.tolist()
        np.testing.assert_allclose(cl.estimate_joint(p, given)[position].numpy(), q, atol=1e-12)
        np.testing.assert_allclose(cl.compute_row_weights(p, given)[position].numpy(), weight, atol=1e-12)
        assert 5 < weight.count(0.0) < 40
        assert q.sum() == pytest.approx(1)


def test_a_class_without_labels_and_a_class_without_confident_rows_do_no_harm() -> None:
    p = torch.tensor([[[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.9, 0.1, 0.0], [0.9, 0.1, 0.0]]], dtype=torch.float64)
    given = torch.tensor([[0, 0, 1, 1]])
    joint, q, weight = by_hand(p[0].numpy(), given[0].tolist())
    assert cl.compute_confident_joint(p, given)[0].tolist() == joint.tolist()
    np.testing.assert_allclose(cl.estimate_joint(p, given)[0].numpy(), q)
    assert joint[2].sum() == q[2].sum() == 0
    assert cl.compute_row_weights(p, given)[0].tolist() == pytest.approx(weight)
    assert weight[2:] == [0, 0]  # no row labelled 1 is held to be right: both go
    nobody = torch.tensor([[[0.5, 0.5], [0.5, 0.5]]], dtype=torch.float64)
    assert cl.compute_row_weights(nobody, torch.tensor([[0, 0]])).tolist() == [[1.0, 1.0]]


def test_labels_are_spread_evenly_over_the_folds_and_replicas_have_their_own() -> None:
    given = torch.arange(40).remainder(4).expand(2, -1)
    fold = cl.assign_folds(given, 5, make_keys(["a", "b"]))
    for position in range(2):
        for label in range(4):
            assert torch.bincount(fold[position][given[position] == label], minlength=5).tolist() == [2] * 5
    assert not torch.equal(fold[0], fold[1])
    assert torch.equal(cl.assign_folds(given[:1], 5, make_keys(["b"]))[0], fold[1])


def test_every_probability_is_of_a_network_that_has_not_seen_the_row_and_the_last_sees_what_stays() -> None:
    data = rows()
    x, label = data.inputs[1], data.target[0]
    training = Training(stack("confident_learning", [{"folds": 3}], data, 14), data, 14)
    assert training.stages == (2, 2, 2, 8)
    algorithm: Any = training.stack.algorithm
    expected = torch.zeros(ROWS, CLASSES, dtype=torch.float64)
    for fold in range(3):
        plain = weights(training.stack.network, 0)
        seen = algorithm.fold[0] != fold
        for _ in range(2):
            training.step()
            descend(plain, F.cross_entropy(answered(plain, x[seen]), label[seen]))
        expected[~seen] = answered(plain, x[~seen]).softmax(-1).detach()
    torch.testing.assert_close(algorithm.probabilities[0], expected, rtol=0, atol=1e-10)
    weight = torch.tensor(by_hand(expected.numpy(), label.tolist())[2], dtype=torch.float64)
    torch.testing.assert_close(algorithm.weight[0], weight, rtol=0, atol=1e-10)
    plain = weights(training.stack.network, 0)
    loss = (F.cross_entropy(answered(plain, x), label, reduction="none") * weight).sum() / weight.sum()
    training.step()
    assert float(training.losses) == pytest.approx(loss.item(), abs=1e-10)
