"""Test-time adaptation: what a batch teaches, and what a reset forgets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms._adaptive import OnlineAdam, entropy
from farshift.baselines.replicas.stacked import attach_rng
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.core.errors import ModelError
from torch import Tensor

from .shifted_stacks import IMAGES, RESNET, asked, farthest_answers, finished, near, wide_rows
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
def test_replicas_that_adapt_side_by_side_answer_as_each_would_alone(algorithm: str, settings: dict[str, Any]) -> None:
    more: dict[str, Any] = {}
    if algorithm in dict(ON_PICTURES):
        more = {"network": "resnet", "sizes": IMAGES}
    common = (RESNET if more else ADAM) | settings
    assert farthest_answers(algorithm, {}, {"lr": 0.02}, {"lr": 0.03}, common=common, steps=10, **more) <= 1e-12


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
    assert looks.validation.looked
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


def test_the_affine_parameters_take_a_step_of_adam_down_the_entropy_after_each_answer() -> None:
    each = [{"adaptive_lr": 0.05}, {"adaptive_lr": 0.01}]
    stack, data = made("tent", *each)
    alone = [stack.only([replica]).network for replica in range(2)]
    result = asked(stack, data, 8)
    for replica, network in enumerate(alone):
        attach_rng(network, None)  # type: ignore[arg-type]
        network.train()  # no noise that is silent: normalised by the batch, as in training
        affine = [p for name, p in network.named_parameters() if ".norm." in name]
        assert len(affine) == 8
        oracle = torch.optim.Adam(affine, lr=each[replica]["adaptive_lr"])
        for start in range(0, len(data), 8):
            logits = network(*(x[None, start : start + 8] for x in data.inputs))
            assert near(result[replica, start : start + 8], logits[0])
            p = logits.softmax(-1)
            oracle.zero_grad()
            (-(p * p.log()).sum(-1)).mean().backward()
            oracle.step()


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


def neighbours(
    memory: list[tuple[Tensor, int]], rows: Tensor, k: int, temperature: float, beta: float
) -> tuple[Tensor, list[tuple[Tensor, int]]]:
    """AdaNPC by its equations: the probabilities of a batch, and the memory after it."""
    scores = torch.zeros(len(rows), 3, dtype=torch.float64)
    for position, row in enumerate(rows):
        near_first = sorted(((float(row @ other), label) for other, label in memory), reverse=True)[:k]
        share = torch.tensor([similar / temperature for similar, _ in near_first], dtype=torch.float64).softmax(0)
        for weight, (_, label) in zip(share, near_first, strict=True):
            scores[position, label] += weight
    joins = [(row, int(p.argmax())) for row, p in zip(rows, scores, strict=True) if float(p.max()) >= beta]
    return scores, memory + joins


def test_neighbours_vote_by_similarity_and_sure_rows_join_the_memory() -> None:
    each: list[dict[str, Any]] = [{"beta": 0.6, "temperature": 0.05}, {"beta": 0.55, "temperature": 0.1, "lr": 0.05}]
    stack, data = made("ada_npc", *each, k=6)
    shifted = data.unlabelled
    assert shifted is not None
    result = stack.answer(*shifted, rows=4).softmax(-1)
    sizes = []
    for replica, own in enumerate(each):
        w = {name: value[replica].detach() for name, value in stack.network.named_parameters()}
        learned = F.normalize(encode(w, data.inputs[1]), dim=-1)
        memory = list(zip(learned, data.target[0].tolist(), strict=True))
        for start in range(0, 12, 4):
            rows = F.normalize(encode(w, shifted[1][start : start + 4]), dim=-1)
            scores, memory = neighbours(memory, rows, 6, own["temperature"], own["beta"])
            assert near(result[replica, start : start + 4], scores)
        sizes.append(len(memory))
        labels = stack.algorithm.labels[replica]
        assert int((labels >= 0).sum()) == len(memory)
    assert all(size > 24 for size in sizes)
    assert len(set(sizes)) == 2, "other rows join in each replica"


def test_no_row_joins_above_certainty() -> None:
    stack, data = made("ada_npc", beta=1.1, k=5)
    assert torch.equal(asked(stack, data), asked(stack, data))
    assert stack.algorithm.memory.shape[1] == len(data)
