"""SWAD: which looks at validation rows it begins and ends at, and the mean of the weights between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .shifted_stacks import finished, near, wide_rows
from .small_stacks import ADAM, begun
from .test_weight_space import history, parameters

Found = tuple[int, int]


def stretch(losses: Sequence[float], converge: int, tolerance: int, ratio: float) -> Found | None:
    """Algorithm 1 of the paper over the losses of all looks: the first and the last look, from 1."""
    start, level = 0, 0.0
    for i in range(1, len(losses) + 1):
        if not start:
            last = losses[max(0, i - converge) : i]
            if len(last) == converge and last[0] == min(last):
                start, level = i - converge + 1, (1 + ratio) * float(np.mean(last))
        elif i - tolerance >= start and min(losses[i - tolerance : i]) > level:
            return start, i - tolerance
    low = [i for i in range(start, len(losses) + 1) if start and losses[i - 1] <= level]
    return (start, max(low)) if low else None


def held_losses(training: Training, passed: list[list[Tensor]], replica: int) -> list[float]:
    """The validation loss after each step of a plain run."""
    val = training.data.held_out["id_val"]
    result = []
    for step in passed:
        hidden, bias, head, offset = (tensor[replica] for tensor in step)
        logits = torch.relu(val.inputs[1] @ hidden.T + bias) @ head.T + offset
        result.append(torch.nn.functional.cross_entropy(logits, val.target[0]).item())
    return result


@pytest.mark.parametrize("looks", [40, 10])
def test_weights_are_averaged_over_every_step_of_that_stretch(looks: int) -> None:
    settings = {"looks": looks, "converge": 2, "tolerance": 2, "ratio": 0.001}
    each = ({"lr": 0.05}, {"lr": 0.1}, {"lr": 0.02})

    def made(algorithm: str, **own: Any) -> Training:
        return begun(algorithm, *each, common=ADAM | own, data=wide_rows(), steps=40)

    passed, trained = history(made("erm")), made("swad", **settings)
    result = parameters(trained)
    every = 40 // looks
    ended = []
    for replica in range(3):
        losses = held_losses(trained, passed, replica)[every - 1 :: every]
        ends = stretch(losses, 2, 2, 0.001)
        ended.append(ends)
        steps = passed[-every:] if ends is None else passed[(ends[0] - 1) * every : ends[1] * every]
        for position, parameter in enumerate(result):
            assert near(parameter[replica], torch.stack([step[position][replica] for step in steps]).mean(0))
    assert any(ends is not None and ends[1] < looks for ends in ended), "one ends before training does"


def test_a_training_shorter_than_a_window_answers_with_its_last_weights_averaged() -> None:
    training = begun("swad", {}, {}, common=ADAM | {"looks": 2}, data=wide_rows(), steps=4)
    passed = history(begun("erm", {}, {}, common=ADAM, data=wide_rows(), steps=4))
    expected = [torch.stack(tensors).mean(0) for tensors in zip(*passed[2:], strict=True)]
    assert all(near(item, other) for item, other in zip(parameters(training), expected, strict=True))
    assert finished(begun("swad", {}, {}, common=ADAM, data=wide_rows(), steps=1))
