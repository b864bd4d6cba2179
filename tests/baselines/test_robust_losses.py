"""Losses that wrong labels harm less: each is its formula, for every replica with its own settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.bi_tempered import tempered_log_softmax
from farshift.baselines.training.trainer import Training
from scipy.optimize import brentq
from torch import Tensor

from .twelve_rows import CLASSES, check_steps, rows, settings, stack

Own = Mapping[str, Any]


def test_label_smoothing_begins_after_its_share_of_the_steps() -> None:
    data = rows()
    early, late = ({"rate": -0.5, "start": start} for start in (0.0, 0.5))
    plain = Training(stack("label_smoothing", [early, late, {"rate": 0.0}], data, 4, names=["a"] * 3), data, 4)
    losses = []
    for _ in range(4):
        plain.step()
        losses.append(plain.losses)
    table = torch.stack(losses)
    assert torch.equal(table[:2, 1], table[:2, 2])
    assert (table[2:, 1] != table[2:, 2]).all()
    assert table[0, 0] != table[0, 1]


def exp_t(x: float, t: float) -> float:
    return math.exp(x) if t == 1 else max(0.0, 1 + (1 - t) * x) ** (1 / (1 - t))


def tempered(scores: list[float], t: float) -> list[float]:
    """By a bracketed root search for the normaliser."""
    low, high = max(scores) - 1, max(scores) + 1e6
    shift = brentq(lambda c: sum(exp_t(a - c, t) for a in scores) - 1, low + 1, high, xtol=1e-13, rtol=1e-15)
    return [exp_t(a - shift, t) for a in scores]


@pytest.mark.parametrize("t", [1.0, 1.0001, 1.2, 2.0, 4.0])
def test_the_tempered_softmax_sums_to_one_and_equals_a_bracketed_search(t: float) -> None:
    scores = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 5
    result = tempered_log_softmax(scores, torch.tensor(t, dtype=torch.float64).view(1, 1, 1)).exp()
    expected = torch.tensor([tempered(row, t) for row in scores.flatten(0, 1).tolist()], dtype=torch.float64)
    torch.testing.assert_close(result.flatten(0, 1), expected, rtol=0, atol=1e-10)


def test_the_bi_tempered_loss_at_temperature_one_is_cross_entropy_and_predicts_its_tempered_softmax() -> None:
    check_steps("bi_tempered", [{"t1": 1.0, "t2": 1.0}] * 2, lambda logits, label, _: F.cross_entropy(logits, label))
    data = rows()
    built = stack("bi_tempered", [{"t1": 0.5, "t2": 2.0}], data)
    built.ready()
    scores = built.network(*(x[None] for x in data.inputs))[0].tolist()
    expected = torch.tensor([tempered(row, 2.0) for row in scores], dtype=torch.float64)
    torch.testing.assert_close(built.answer(*data.inputs)[0].softmax(-1), expected, rtol=0, atol=1e-10)


def test_bootstrapping_mixes_the_label_with_the_class_believed_in() -> None:
    def hard(logits: Tensor, label: Tensor, given: Own) -> Tensor:
        p = logits.softmax(-1)
        target = (
            given["beta"] * F.one_hot(label, CLASSES).double()
            + (1 - given["beta"]) * F.one_hot(p.argmax(-1), CLASSES).double()
        )
        return -(target * p.log()).sum(-1).mean()

    check_steps("bootstrapping", [{"beta": 0.8, "belief": "hard"}, {"beta": 0.6, "belief": "hard"}], hard)
    assert settings("bootstrapping")["belief"] == "soft"


TRANSITION = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]], dtype=torch.float64)


def corrected(name: str, logits: Tensor, label: Tensor, **given: float) -> Tensor:
    """The corrected loss under a matrix that is known, of every row."""
    algorithm: Any = stack(name, [given], rows()).algorithm
    algorithm.transition = TRANSITION[None]
    result: Tensor = algorithm.corrected(logits[None], label[None])[0]
    return result


def some_answers() -> tuple[Tensor, Tensor]:
    logits = torch.randn(9, CLASSES, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return logits, torch.arange(9) % CLASSES


def test_backward_correction_may_go_half_the_way_to_the_identity() -> None:
    logits, label = some_answers()
    half = torch.linalg.inv((TRANSITION + torch.eye(3, dtype=torch.float64)) / 2)
    result = corrected("backward_correction", logits, label, identity=0.5)
    torch.testing.assert_close(result, (half[label] * -logits.log_softmax(-1)).sum(-1), rtol=0, atol=1e-12)
