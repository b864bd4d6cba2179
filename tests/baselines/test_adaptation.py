"""Test-time adaptation: what a batch teaches, and what a reset forgets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training

from .shifted_stacks import IMAGES, RESNET, asked, finished, near, wide_rows
from .small_stacks import ADAM, begun

ON_FEATURES: list[tuple[str, dict[str, Any]]] = [
    ("t3a", {"supports": 2}),
    ("t3a", {"supports": 0}),
    ("ada_npc", {"k": 5, "beta": 0.5}),
    ("itta", {"adaptive_lr": 0.05, "test_weight": 1.0}),
]
ON_PICTURES: list[tuple[str, dict[str, Any]]] = [
    ("tent", {"adaptive_lr": 0.05}),
    ("eata", {"adaptive_lr": 0.05, "sure": 1.1, "redundant": 1.1}),
    ("sar", {"adaptive_lr": 0.05, "sure": 1.1, "collapsed": 0.0}),
    ("cotta", {"adaptive_lr": 0.05, "confident": 1.1, "views": 2}),
]
EVERY = [*ON_FEATURES, *ON_PICTURES]
ids = [f"{name} {settings.get('supports', '')}".strip() for name, settings in EVERY]


def training_of(algorithm: str, *each: dict[str, Any], steps: int = 10, **settings: Any) -> Training:
    """Of one replica, or of one for each of `each`; on pictures a residual network."""
    images = algorithm in dict(ON_PICTURES)
    data = wide_rows(sizes=IMAGES if images else None)
    more: dict[str, Any] = {"network": "resnet", "sizes": IMAGES} if images else {}
    common = (RESNET if images else ADAM) | settings
    return begun(algorithm, *(each or ({},)), common=common, data=data, steps=steps, **more)


def made(algorithm: str, *each: dict[str, Any], **settings: Any) -> tuple[ReplicaStack, Data]:
    """A trained replica stack and its data."""
    training = training_of(algorithm, *each, **settings)
    return finished(training), training.initial_data


@pytest.mark.parametrize(("algorithm", "settings"), EVERY, ids=ids)
def test_what_is_asked_changes_later_answers_until_a_reset(algorithm: str, settings: dict[str, Any]) -> None:
    stack, data = made(algorithm, {}, {"lr": 0.02}, **settings)
    first = asked(stack, data)
    again = asked(stack, data)
    assert not torch.equal(first, again)
    stack.algorithm.reset(stack.network)
    assert torch.equal(first, asked(stack, data))


@pytest.mark.parametrize(("algorithm", "settings"), EVERY, ids=ids)
def test_validation_in_training_teaches_nothing(algorithm: str, settings: dict[str, Any]) -> None:
    looks, never = (training_of(algorithm, **settings, **more) for more in ({"check_every": 1, "patience": 100}, {}))
    for training in (looks, never):
        for _ in range(6):
            training.step()
    assert looks.validation is not None
    assert looks.validation.best is not None
    assert never.validation is None
    states = [training.stack.state_dict() for training in (looks, never)]
    assert states[0].keys() == states[1].keys()
    others = [
        name for name in states[0] if name.startswith(("network.", "algorithm.")) and "hyperparameters." not in name
    ]
    assert all(torch.equal(states[0][name], states[1][name]) for name in others)
    stack, inputs = looks.stack, looks.data.inputs
    assert torch.equal(stack.answer(*inputs), stack.answer(*inputs))


def test_templates_without_a_limit_keep_every_support() -> None:
    answers = []
    for most in (0, 1000, 1):
        stack, data = made("t3a", supports=most)
        answers.append(asked(stack, data))
    assert near(answers[0], answers[1])
    assert not near(answers[0], answers[2], 1e-3)


def test_no_row_joins_above_certainty() -> None:
    stack, data = made("ada_npc", beta=1.1, k=5)
    assert torch.equal(asked(stack, data), asked(stack, data))
    assert stack.algorithm.memory.shape[1] == len(data)
