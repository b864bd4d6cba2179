"""Algorithms that adapt to inputs of shifted rows, by their papers' formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.importance_weighting import fit_log_odds
from farshift.core.errors import ModelError

from .shifted_stacks import IMAGES, finished, near, wide_rows
from .small_stacks import PLAIN, batch_of, begun, encode, head, moved_along, weights


def test_fixmatch_learns_its_own_labels_of_pictures_that_were_changed() -> None:
    settings: dict[str, Any] = {"widths": [2], "width": 4, "batch_size": 6, "lr": 0.1, "optimiser": "sgd"}
    each = ({"weight": 0.0, "threshold": 0.1}, {"weight": 2.0, "threshold": 0.1}, {"weight": 2.0, "threshold": 1.1})
    names = ("same", "same", "same")
    built = begun(
        "fixmatch", *each, network="cnn", common=settings, data=wide_rows(sizes=IMAGES), sizes=IMAGES, names=names
    )
    bare = begun("erm", {}, network="cnn", common=settings, data=wide_rows(sizes=IMAGES), sizes=IMAGES, names=("same",))
    built.step(), bare.step()
    nothing, pulled, unsure = built.losses.tolist()
    assert nothing == pytest.approx(bare.losses.item()) == pytest.approx(unsure)
    assert pulled > nothing
    with pytest.raises(ModelError, match="augmentation randaugment: it is for images of one or three channels"):
        begun("fixmatch", {}, data=wide_rows())


def test_rows_count_by_their_flattened_odds() -> None:
    each = ({"flattening": 1.0}, {"flattening": 0.5}, {"flattening": 0.0})
    built = begun("importance_weighting", *each, common=PLAIN, data=wide_rows())
    data = built.data
    assert data.unlabelled is not None
    odds = fit_log_odds(data.inputs[1], data.unlabelled[1], 1.0)
    batch, before = batch_of(built), [weights(built, replica) for replica in range(3)]
    losses = []
    for k, (w, own) in enumerate(zip(before, each, strict=True)):
        weight = (own["flattening"] * odds).exp()
        weight = (weight / weight.mean())[batch.rows[k]]
        errors = F.cross_entropy(head(w, encode(w, batch.inputs[1][k])), batch.target[k], reduction="none")
        losses.append((weight * errors).mean())
    built.step()
    assert moved_along(built, before, losses)
    assert losses[0].item() != pytest.approx(losses[2].item(), abs=1e-3)


def test_classes_count_by_their_estimated_share_of_the_shifted_rows() -> None:
    built = begun("bbse", {}, {"lr": 0.2}, common=PLAIN, data=wide_rows(), steps=8)
    data, locked = built.data, built.data.held_out["id_val"]
    assert data.unlabelled is not None
    for _ in range(4):
        before = [weights(built, replica) for replica in range(2)]
        batch = batch_of(built)
        built.step()
    # The step before the stage's end shows the network whose errors were counted.
    counted = []
    for k, w in enumerate(before):
        loss = F.cross_entropy(head(w, encode(w, batch.inputs[1][k])), batch.target[k])
        slopes = torch.autograd.grad(loss, list(w.values()))
        lr = (0.1, 0.2)[k]
        counted.append({name: v - lr * slope for (name, v), slope in zip(w.items(), slopes, strict=True)})
    for k, w in enumerate(counted):
        confusion, marginal = torch.zeros(3, 3).double(), torch.zeros(3).double()
        for x, y in zip(locked.inputs[1], locked.target[0], strict=True):
            confusion[head(w, encode(w, x)).argmax(), y] += 1 / len(locked)
        for x in data.unlabelled[1]:
            marginal[head(w, encode(w, x)).argmax()] += 1 / len(data.unlabelled[1])
        ridge = torch.eye(3).double() / min(len(locked), len(data.unlabelled[1]))
        expected = torch.linalg.inv(confusion.T @ confusion + ridge) @ confusion.T @ marginal
        assert near(built.stack.algorithm.class_weight[k], expected.clamp(min=0))  # type: ignore[operator]
    batch, before = batch_of(built), [weights(built, replica) for replica in range(2)]
    losses = []
    for k, w in enumerate(before):
        weight = built.stack.algorithm.class_weight[k][batch.target[k]]  # type: ignore[operator, index]
        errors = F.cross_entropy(head(w, encode(w, batch.inputs[1][k])), batch.target[k], reduction="none")
        losses.append((weight * errors).mean())
    built.step()
    assert moved_along(built, before, [losses[0], 2 * losses[1]])


def test_two_classifiers_answer_with_the_sum_of_their_logits() -> None:
    built, x = begun("mcd", {}, {"lr": 0.2}, common=PLAIN, data=wide_rows()), wide_rows().inputs
    answers = finished(built).answer(*x)
    w = {name: value[1].detach() for name, value in built.stack.network.named_parameters()}
    assert near(answers[1], head(w, encode(w, x[1])) + head(w, encode(w, x[1]), "second"))
