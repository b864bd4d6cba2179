"""Training: the same seed the same result, rows in proportion to their weights, and no silent failure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from farshift.baselines.algorithms import erm
from farshift.baselines.baseline import Baseline
from farshift.baselines.recipe import recipe as shipped
from farshift.baselines.trainer import batches, epochs, generator, rate
from farshift.benchmarks.model import Budget, TrainableModel
from farshift.splits.errors import ModelError

from .toys import ADD, TURN, Rows, additions, commands, recipe, trained

SHORT = recipe("mlp", 20, lr=0.01, batch_size=16)


def logits(model: Baseline) -> torch.Tensor:
    network = model._model.network  # type: ignore[union-attr]
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


def test_a_baseline_is_a_trainable_model() -> None:
    assert isinstance(Baseline(SHORT, ADD, 0, "toy/toy"), TrainableModel)


@pytest.mark.parametrize("made", [SHORT, recipe("lstm", 5, dropout=0.2)], ids=["mlp", "lstm with dropout"])
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(made) -> None:  # type: ignore[no-untyped-def]
    task, rows = (ADD, additions()) if made.network == "mlp" else (TURN, commands())
    torch.manual_seed(1)
    first = logits(trained(made, task, rows, seed=0))
    torch.manual_seed(2)
    assert torch.equal(first, logits(trained(made, task, rows, seed=0)))
    assert not torch.equal(first, logits(trained(made, task, rows, seed=1)))


def test_predictions_of_another_seed_differ() -> None:
    ask = additions().only("a", "b")
    first, again, other = (trained(SHORT, ADD, additions(), seed).predict(ask).prediction for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_the_global_generator_is_left_as_it_was() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    trained(SHORT, ADD, additions())
    assert torch.equal(before, torch.get_rng_state())


def test_whole_weights_are_copies_in_every_epoch() -> None:
    stream = epochs(torch.tensor([1.0, 3.0, 1.0]), generator("w"))
    for epoch in itertools.islice(stream, 4):
        assert torch.bincount(epoch).tolist() == [1, 3, 1]


def test_rows_are_drawn_in_proportion_to_other_weights() -> None:
    weight = torch.tensor([0.5, 1.5, 2.0]).repeat(1000)
    drawn = torch.cat(list(itertools.islice(epochs(weight, generator("w")), 20)))
    share = torch.bincount(drawn % 3) / len(drawn)
    assert share.numpy() == pytest.approx([0.125, 0.375, 0.5], abs=0.01)


def test_sorting_by_length_loses_no_row() -> None:
    lengths = torch.arange(48) % 7
    stream = batches(torch.ones(48), lengths, 8, 6, generator("o"))
    epoch = list(itertools.islice(stream, 6))
    assert torch.cat(epoch).sort().values.tolist() == list(range(48))
    assert max(int(lengths[rows].max() - lengths[rows].min()) for rows in epoch) <= 2


def test_a_weighted_row_decides_between_two_contradicting_ones() -> None:
    rows = Rows(a=[3, 3], b=[3, 3], sum=[1, 5], weight=[1, 9])
    for settings in ({"batch_size": 20}, {"batch_size": 0}):
        model = trained(recipe("mlp", 60, lr=0.01, **settings), ADD, rows)
        assert model.predict({"a": np.array([3]), "b": np.array([3])}).prediction.tolist() == [5]


def test_full_batches_in_chunks_are_the_same_training() -> None:
    whole, parts = (
        logits(trained(recipe("quadratic_mlp", 5, batch_size=0, loss="squared", chunk=chunk), ADD, additions()))
        for chunk in (0, 10)
    )
    assert torch.allclose(whole, parts, atol=1e-5)


def test_a_loss_that_is_not_finite_is_an_error_that_says_when_and_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"the loss is (nan|inf) at step \d+ of 200: lower the setting lr"):
        trained(recipe("quadratic_mlp", 200, lr=1e20, batch_size=0, loss="squared"), ADD, additions())


def test_a_weight_that_is_not_positive_is_refused() -> None:
    rows = additions()
    rows.columns["weight"][3] = 0
    with pytest.raises(ModelError, match="weight"):
        trained(SHORT, ADD, rows)


def test_steps_given_by_the_budget_win() -> None:
    remarks = Baseline(SHORT, ADD, 0, "toy/toy").fit(additions(), None, Budget("quick", steps=3))
    assert remarks["steps"] == 3
    assert remarks["parameters"] == 14 * 128 + 128 + 128 * 7 + 7
    assert 0 < remarks["loss"] < 10


@pytest.mark.parametrize(("schedule", "last"), [("constant", 1.0), ("linear", 0.1), ("cosine", 0.0245)])
def test_the_rate_rises_then_follows_its_schedule(schedule: str, last: float) -> None:
    rates = [rate(step, 20, {"warmup": 0.5, "schedule": schedule}) for step in range(20)]
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert rates[10] == 1.0
    assert rates[19] == pytest.approx(last, abs=1e-3)


def test_padding_is_no_target() -> None:
    words = torch.randn(2, 3, 6)
    target = torch.tensor([[4, 5, 2], [5, 2, 0]])
    alone = [erm.objective(words[:1], target[:1], None, erm.SETTINGS) * 3]
    alone += [erm.objective(words[1:, :2], target[1:, :2], None, erm.SETTINGS) * 2]
    assert torch.allclose(erm.objective(words, target, None, erm.SETTINGS), sum(alone) / 5)


def test_the_squared_loss_is_the_mean_over_rows_and_classes() -> None:
    out, target = torch.randn(5, 7), torch.tensor([0, 1, 2, 3, 6])
    hot = torch.nn.functional.one_hot(target, 7).float()
    ours = erm.objective(out, target, None, {**erm.SETTINGS, "loss": "squared"})
    assert torch.allclose(ours, torch.nn.functional.mse_loss(out, hot))


def test_estimators_equal_scikit_learn_called_directly() -> None:
    from farshift.benchmarks.model import Task
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    digits = load_digits()
    task = Task("classification", ("pixels",), "digit", classes=10)
    pixels, labels = digits.images.astype(np.uint8), digits.target
    rows = Rows(pixels=pixels[:400], digit=labels[:400])
    flat = digits.data.astype(np.float32) / np.float32(16)
    for name, direct in (("knn", KNeighborsClassifier(3)), ("logistic-regression", LogisticRegression(max_iter=1000))):
        found = trained(shipped(name), task, rows).predict({"pixels": pixels[400:]})
        direct.fit(flat[:400], labels[:400])
        assert (found.prediction == direct.predict(flat[400:])).all(), name
        assert np.allclose(found.scores, direct.predict_proba(flat[400:]), atol=1e-6), name


def test_an_estimator_without_weights_gets_copies() -> None:
    made = shipped("knn").model_copy(update={"settings": {"n_neighbors": 3}})
    rows = Rows(a=[0, 1, 2, 3], b=[0, 0, 0, 0], sum=[1, 5, 5, 5], weight=[3, 1, 1, 1])
    assert trained(made, ADD, rows).predict({"a": np.array([0]), "b": np.array([0])}).prediction.tolist() == [1]
