"""Heads and members that agree on training rows and disagree on shifted ones."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.divdis import kl_divergence
from torch import Tensor

from .shifted_stacks import finished, near, wide_rows
from .small_stacks import ADAM, PLAIN, batch_of, begun, encode, head, moved_along, weights


def test_a_divergence_from_a_class_that_never_occurs_is_large_and_finite() -> None:
    result = kl_divergence(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    assert 10 < float(result) < 100


def heads_of(w: dict[str, Tensor], x: Tensor, count: int) -> Tensor:
    return head(w, encode(w, x)).unflatten(-1, (count, -1))


def test_heads_minimise_risk_and_information_at_each_replicas_own_weights() -> None:
    data = wide_rows()
    data = replace(data, weight=torch.tensor([[1.0, 3.0]], dtype=torch.float64).repeat(1, 12))
    each = [{"diversity": 2.0, "prior": 0.5}, {"diversity": 0.3, "prior": 4.0}]
    training = begun("divdis", *each, common=PLAIN | {"heads": 3}, data=data)
    before = [weights(training, replica) for replica in range(2)]
    batch = batch_of(training)
    share = torch.bincount(data.target[0], data.weight[0], minlength=3) / data.weight.sum()
    losses = []
    assert batch.unlabelled is not None
    for replica, own in enumerate(each):
        w = before[replica]
        z = heads_of(w, batch.inputs[1][replica], 3)
        risk = sum(F.cross_entropy(z[:, h], batch.target[replica]) for h in range(3)) / 3
        p = heads_of(w, batch.unlabelled[1][replica], 3).softmax(-1)
        repulsion = torch.zeros((), dtype=torch.float64)
        for g, h in ((0, 1), (0, 2), (1, 2)):
            joint = p[:, g].T @ p[:, h] / len(p)
            repulsion = repulsion + (joint * (joint / torch.outer(p[:, g].mean(0), p[:, h].mean(0))).log()).sum() / 3
        apart = sum((q * (q / share).log()).sum() for q in p.mean(0).unbind()) / 3
        losses.append(risk + own["diversity"] * repulsion + own["prior"] * apart)
    training.step()
    assert near(training.losses, torch.stack(losses))
    assert moved_along(training, before, losses)


def test_heads_begin_apart_and_the_chosen_one_predicts() -> None:
    data = wide_rows()
    for chosen in (0, 1):
        training = begun("divdis", {}, common=ADAM | {"head": chosen}, data=data, steps=3)
        w = weights(training, 0)
        assert not near(w["head.weight"][:3], w["head.weight"][3:], 1e-3)
        stack = finished(training)
        z = heads_of(weights(training, 0), data.inputs[1], 2)
        assert near(stack.answer(*data.inputs)[0], z[:, chosen])


def member(w: dict[str, Tensor], place: int) -> dict[str, Tensor]:
    return {name.removeprefix(f"{place}."): value for name, value in w.items() if name.startswith(f"{place}.")}


def test_the_ensemble_predicts_the_mean_of_its_trained_members_probabilities() -> None:
    data = wide_rows()
    training = begun("d_bat", {}, data=data, common=ADAM | {"candidates": 4}, steps=8)
    outcome = training.run()
    for (_, stack), trained in zip([*outcome.candidates, ("last", outcome.ended[0])], (1, 1, 2, 2), strict=True):
        w = {name: value[0] for name, value in stack.network.named_parameters()}
        each = [head(member(w, m), encode(member(w, m), data.inputs[1])).softmax(-1) for m in range(trained)]
        assert near(stack.answer(*data.inputs)[0].softmax(-1), torch.stack(each).mean(0))


def test_a_deep_ensemble_trains_its_members_in_turn_and_answers_with_the_mean_of_their_probabilities() -> None:
    built = begun("deep_ensembles", {}, {"lr": 0.3}, common=PLAIN | {"members": 3}, data=wide_rows(), steps=7)
    assert built.stages == (3, 2, 2)
    starts = [weights(built, replica) for replica in range(2)]
    assert not torch.equal(starts[0]["0.head.weight"], starts[0]["1.head.weight"])
    for step, member in enumerate((0, 0, 0, 1, 1, 2, 2)):
        batch, before = batch_of(built), [weights(built, replica) for replica in range(2)]
        built.step()
        for replica, (w, lr) in enumerate(zip(before, (0.1, 0.3), strict=True)):
            x, y = batch.inputs[1][replica], batch.target[replica]
            own = {name.removeprefix(f"{member}."): value for name, value in w.items()}
            loss = F.cross_entropy(head(own, encode(own, x)), y)
            after = weights(built, replica)
            for name, value in w.items():
                moves = name.startswith(f"{member}.")
                slope = torch.autograd.grad(loss, value, retain_graph=True)[0] if moves else 0.0
                assert near(after[name], value - lr * slope), (step, name)
    stack, data = finished(built), wide_rows()
    for replica in range(2):
        w = {name: value[replica].detach() for name, value in stack.network.named_parameters()}
        each = [{name[2:]: value for name, value in w.items() if name.startswith(f"{m}.")} for m in range(3)]
        mean = sum(head(item, encode(item, data.inputs[1])).softmax(-1) for item in each) / 3
        assert near(stack.answer(*data.inputs)[replica].softmax(-1), mean)
