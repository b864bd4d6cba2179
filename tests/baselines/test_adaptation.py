"""Test-time adaptation: what a batch teaches, and what a reset forgets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms._adaptive import OnlineAdam, entropy
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.core.errors import ModelError
from torch import Tensor

from .shifted_stacks import IMAGES, RESNET, asked, finished, near, wide_rows
from .small_stacks import ADAM, begun, encode, head

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


def test_steps_taken_while_predicting_are_those_of_adam() -> None:
    drawn = torch.Generator().manual_seed(0)
    start = [torch.randn(2, 3, generator=drawn, dtype=torch.float64), torch.randn(2, generator=drawn).double()]
    rates = torch.tensor([0.1, 0.02], dtype=torch.float64)
    ours = [p.clone() for p in start]
    optimiser = OnlineAdam(ours)
    theirs = [[torch.nn.Parameter(p[replica].clone()) for p in start] for replica in range(2)]
    oracles = [torch.optim.Adam(own, lr=float(rate)) for own, rate in zip(theirs, rates, strict=True)]
    for _ in range(5):
        gradients = tuple(torch.randn(p.shape, generator=drawn, dtype=torch.float64) for p in start)
        optimiser.step(ours, gradients, rates)
        for replica, (own, oracle) in enumerate(zip(theirs, oracles, strict=True)):
            for parameter, gradient in zip(own, gradients, strict=True):
                parameter.grad = gradient[replica].clone()
            oracle.step()
    for replica in range(2):
        assert all(near(item[replica], other, 1e-12) for item, other in zip(ours, theirs[replica], strict=True))


def test_tent_needs_layers_that_normalise() -> None:
    with pytest.raises(ModelError, match="tent adapts normalisation layers, and this network has none: use resnet"):
        begun("tent", {}, data=wide_rows())


def templates(w: dict[str, Tensor], batches: list[Tensor], most: int) -> list[Tensor]:
    """T3A by its equations: lists of supports, all of them kept and sorted anew for every batch."""
    supports = [[(float(entropy(head(w, vector[None]))), vector)] for vector in w["head.weight"]]
    answers = []
    for x in batches:
        z = encode(w, x)
        for row in z:
            logits = head(w, row[None])[0]
            supports[int(logits.argmax())].append((float(entropy(logits)), row))
        centres = []
        for of_class in supports:
            stored = sorted(of_class, key=lambda pair: pair[0])[: most or None]
            centres.append(F.normalize(sum(F.normalize(v, dim=0) for _, v in stored), dim=0))  # type: ignore[arg-type]
        answers.append(z @ torch.stack(centres).T)
    return answers


@pytest.mark.parametrize("most", [1, 3, 0])
def test_templates_are_means_of_the_surest_supports_of_each_class(most: int) -> None:
    stack, data = made("t3a", {}, {"lr": 0.05}, supports=most)
    result = asked(stack, data, 7)
    for replica in range(2):
        w = {name: value[replica].detach() for name, value in stack.network.named_parameters()}
        expected = templates(w, list(data.inputs[1].split(7)), most)
        assert near(result[replica], torch.cat(expected))


def test_no_row_joins_above_certainty() -> None:
    stack, data = made("ada_npc", beta=1.1, k=5)
    assert torch.equal(asked(stack, data), asked(stack, data))
    assert stack.algorithm.memory.shape[1] == len(data)
