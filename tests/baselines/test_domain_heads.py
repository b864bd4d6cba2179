"""Algorithms that give the network more parts: ARM's context, DRM's heads, PEGO's updates, ENDEF's entities."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.replicas.rng import draw_uniform
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .small_stacks import (
    ADAM,
    CLASSES,
    batch_of,
    begun,
    clock_of,
    close,
    encode,
    head,
    moved_along,
    perceptron,
    rows,
    weights,
)

MIXED = Sizes(CLASSES, categories=(4, 3), numbers=2)


def loss_of(training: Training) -> Tensor:
    """The losses of the step to come, (K,)."""
    stack = training.stack
    losses: Tensor = stack.algorithm.loss(stack.network, batch_of(training), clock_of(training))
    return losses


def test_arms_prediction_of_a_row_depends_on_the_rows_it_is_given_with() -> None:
    training = begun("arm", {})
    inputs = rows(6).inputs
    full = training.stack.answer(*inputs)
    half = training.stack.answer(*(x[:3] for x in inputs))
    order = torch.tensor([4, 2, 0, 1, 5, 3])
    assert not torch.allclose(full[:, :3], half)
    assert close(training.stack.answer(*(x[order] for x in inputs)), full[:, order])


def test_a_head_that_is_certain_of_a_class_is_no_division_by_zero() -> None:
    training = begun("drm", {"certainty": 5.0})
    with torch.no_grad():
        training.stack.network.environment_heads.bias[:, 0] = 1e4
    scores = training.stack.answer(*rows().inputs).softmax(-1)
    assert torch.isfinite(scores).all()
    assert (scores[..., 0] > 0.99).all()


PEGO: dict[str, Any] = {"groups": 3, "rank": 2, "pretrain_percent": 50}


def test_pego_trains_all_but_the_updates_then_the_updates_and_the_head_alone() -> None:
    training = begun("pego", PEGO, common=ADAM, steps=6)
    states = [weights(training, 0)]
    for _ in range(6):
        training.step()
        states.append(weights(training, 0))
    start, middle, end = states[0], states[3], states[6]
    changed = [
        {name for name in start if not torch.equal(a[name], b[name])} for a, b in ((start, middle), (middle, end))
    ]
    assert changed[0] == {"hidden.0.weight", "hidden.0.bias", "head.weight", "head.bias"}
    assert changed[1] == {"hidden.0.down.weight", "hidden.0.up.weight", "head.weight", "head.bias"}


def test_before_its_updates_are_trained_pego_is_empirical_risk_minimisation() -> None:
    pego, erm = begun("pego", PEGO | {"lr": 0.1}, steps=6), begun("erm", {}, steps=6)
    for training in (pego, erm):
        for _ in range(3):
            training.step()
    inputs = rows().inputs
    assert torch.equal(pego.stack.answer(*inputs), erm.stack.answer(*inputs))


def test_pego_that_pretrains_to_the_end_freezes_nothing() -> None:
    training = begun("pego", PEGO | {"pretrain_percent": 100}, common=ADAM, steps=3)
    before = weights(training, 0)["hidden.0.weight"]
    while not training.done:
        training.step()
    assert not training.stack.algorithm.frozen.any()
    assert not torch.equal(before, weights(training, 0)["hidden.0.weight"])


def test_pegos_penalty_sums_the_products_of_updates_with_the_weights_and_each_other() -> None:
    each = [PEGO | {"orthogonality": 0.3, "lr": 0.1}, PEGO | {"orthogonality": 2.0, "lr": 0.1}]
    training = begun("pego", *(item | {"pretrain_percent": 0} for item in each))
    with torch.no_grad():
        training.stack.network.hidden[0].up.weight.normal_()
    batch, before = batch_of(training), [weights(training, k) for k in (0, 1)]
    losses, expected = loss_of(training), []
    for k, w in enumerate(before):
        base = w["hidden.0.weight"].detach()
        pairs = zip(w["hidden.0.up.weight"].split(2, dim=1), w["hidden.0.down.weight"].split(2), strict=True)
        updates = [up @ down for up, down in pairs]
        penalty = sum((base @ update.T).abs().sum() for update in updates)
        penalty = penalty + sum((a @ b.T).abs().sum() for a, b in combinations(updates, 2))
        x, y = batch.inputs[1][k], batch.target[k]
        z = torch.relu(x @ (base + sum(updates)).T + w["hidden.0.bias"].detach())
        expected.append(F.cross_entropy(head(w, z), y) + each[k]["orthogonality"] * penalty)
    training.step()
    assert close(losses, torch.stack(expected))
    assert moved_along(training, before, expected)


def test_endef_mixes_in_what_entities_alone_say_and_learns_that_too() -> None:
    each: list[dict[str, Any]] = [
        {"entity_share": 0.1, "entity_weight": 0.2, "masked": 0.3, "dropped": 0.3, "lr": 0.1},
        {"entity_share": 0.4, "entity_weight": 1.5, "masked": 0.0, "dropped": 0.0, "lr": 0.1},
    ]
    training = begun("endef", *each, sizes=MIXED)
    batch, clock, before = batch_of(training), clock_of(training), [weights(training, k) for k in (0, 1)]
    drawn = draw_uniform(clock.draw("entities"), batch.inputs[0].shape[1:], torch.float64)
    losses, expected = loss_of(training), []
    training.step()
    for k, (w, settings) in enumerate(zip(before, each, strict=True)):
        biased, seen = [], []
        for row, (ids, numbers) in enumerate(zip(batch.inputs[0][k].tolist(), batch.inputs[1][k], strict=True)):
            total = torch.zeros(64, dtype=torch.float64)
            for field, (first, mask) in enumerate(((0, 4), (5, 8))):
                chance = float(drawn[k, row, field])
                masked = chance < settings["masked"]
                if masked or chance >= settings["masked"] + settings["dropped"]:
                    total = total + w["entities.table.weight"][mask if masked else first + ids[field]]
            biased.append(perceptron(w, total, "entities.reader", 2))
            hot = [F.one_hot(torch.tensor(id), size) for id, size in zip(ids, MIXED.categories, strict=True)]
            seen.append(torch.cat([*hot, numbers]))
        y, z, a = batch.target[k], torch.stack(biased), settings["entity_share"]
        joint = (1 - a) * head(w, encode(w, torch.stack(seen))) + a * z
        expected.append(F.cross_entropy(joint, y) + settings["entity_weight"] * F.cross_entropy(z, y))
    assert close(losses, torch.stack(expected))
    assert moved_along(training, before, expected)


def test_endef_predicts_without_its_entity_model() -> None:
    training = begun("endef", {}, sizes=MIXED)
    inputs = rows(sizes=MIXED).inputs
    before = training.stack.answer(*inputs)
    with torch.no_grad():
        training.stack.network.entities.table.weight.fill_(9.0)
    assert torch.equal(before, training.stack.answer(*inputs))


def test_endef_masks_and_drops_at_the_rates_it_is_told_and_never_both() -> None:
    training = begun("endef", {"masked": 0.1, "dropped": 0.3}, sizes=MIXED)
    ids = torch.zeros(1, 20_000, 2, dtype=torch.int64)
    masked, dropped = training.stack.algorithm.hidden(ids, clock_of(training))
    assert float(masked.double().mean()) == pytest.approx(0.1, abs=0.01)
    assert float(dropped.double().mean()) == pytest.approx(0.3, abs=0.01)
    assert not (masked & dropped).any()
