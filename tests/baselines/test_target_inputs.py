"""Algorithms that adapt to inputs of shifted rows, by their papers' formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.fixmatch import compute_consistency_loss
from farshift.baselines.algorithms.importance_weighting import fit_log_odds
from farshift.baselines.recipe import find_plugin_files, read_literal
from farshift.core.errors import ModelError

from .shifted_stacks import IMAGES, finished, near, wide_rows
from .small_stacks import PLAIN, batch_of, begun, encode, head, moved_along, weights

ADAPTING = ["afn", "bbse", "coral_target", "dann_target", "importance_weighting", "mcd"]
TARGET = [*ADAPTING, "fixmatch"]


@pytest.mark.parametrize("algorithm", TARGET)
def test_inputs_of_shifted_rows_are_declared_and_needed(algorithm: str) -> None:
    assert "unlabelled" in read_literal(find_plugin_files("algorithms")[algorithm], "TOUCHES")
    with pytest.raises(ModelError, match="whose protocol has ood_test_inputs, such as vowel/speakers_unlabelled"):
        begun(algorithm, {}, data=replace(wide_rows(), unlabelled=None))


def test_only_what_is_sure_pulls_the_strong_form() -> None:
    weak = torch.tensor([[[4.0, 0.0], [0.1, 0.0], [0.0, 5.0]]] * 2, dtype=torch.float64)
    strong = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = compute_consistency_loss(weak, strong, torch.tensor([0.95, 0.5], dtype=torch.float64))
    all_rows = F.cross_entropy(strong[1], torch.tensor([0, 0, 1]))
    some = (F.cross_entropy(strong[0][:1], torch.tensor([0])) + F.cross_entropy(strong[0][2:], torch.tensor([1]))) / 3
    assert result.tolist() == pytest.approx([some.item(), all_rows.item()])


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


def test_the_odds_of_a_shifted_row_are_those_of_scikit_learns_regression() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    drawn = torch.Generator().manual_seed(4)
    source = torch.randn(60, 3, generator=drawn, dtype=torch.float64)
    target = torch.randn(40, 3, generator=drawn, dtype=torch.float64) + torch.tensor([1.0, 0.0, -0.5])
    joined = torch.cat([source, target])
    scaled = ((joined - joined.mean(0)) / joined.std(0, correction=0)).numpy()
    fitted = linear.LogisticRegression(C=0.3, tol=1e-12, max_iter=10000).fit(scaled, [0] * 60 + [1] * 40)
    expected = torch.from_numpy(fitted.decision_function(scaled)[:60])
    assert near(fit_log_odds(source, target, 0.3), expected, 1e-6)


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
