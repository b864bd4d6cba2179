"""Training: the same seed the same result, rows by their weights, candidates and early stopping as the recipe says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from farshift.baselines.baseline import Baseline
from farshift.baselines.training.losses import average_over_batch, cross_entropy, squared_error
from farshift.baselines.training.sampler import Batch
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.model import Budget, TrainableModel
from farshift.core.errors import ModelError

from .killed_groups import answers, fitted, made, rows
from .toys import ADD, TURN, additions, commands, recipe, trained
from .toys import Rows as Table

SHORT = recipe("mlp", 20, lr=0.01, batch_size=16)


def probabilities(model: Baseline) -> np.ndarray:
    return model.predict(additions().only("a", "b")).scores  # type: ignore[union-attr]


def test_a_baseline_is_a_trainable_model() -> None:
    assert isinstance(Baseline(SHORT, ADD, 0, "toy/toy"), TrainableModel)


def test_the_same_seed_gives_the_same_bits_whatever_the_global_generator_and_another_seed_others() -> None:
    built = recipe("mlp", 20, dropout=0.2, batch_size=16)
    torch.manual_seed(1)
    first = probabilities(trained(built, ADD, additions(), seed=0))
    torch.manual_seed(2)
    assert (probabilities(trained(built, ADD, additions(), seed=0)) == first).all()
    assert (probabilities(trained(built, ADD, additions(), seed=1)) != first).any()


def test_the_global_generator_is_left_as_it_was() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    trained(SHORT, ADD, additions())
    assert torch.equal(before, torch.get_rng_state())


def test_settings_in_a_sweep_are_the_settings_run_one_by_one() -> None:
    """Floats are stacked; what else differs (a width, an optimiser) has replica stacks of its own."""
    each = [{}, {"lr": 0.1}, {"lr": 0.003, "weight_decay": 0.1}, {"width": 9}, {"width": 9, "lr": 0.1}]
    each.append({"optimiser": "sgd", "lr": 0.5})
    members = [Member(0, settings) for settings in each]
    fit = fitted(made(), members)
    together = answers(fit)
    assert [fit.remarks(member)["replicas"] for member in members] == [3, 3, 3, 2, 2, 1]
    for member in members:
        (alone,) = answers(fitted(made(), [member])).values()
        assert np.abs(np.array(alone) - together[f"{member.label} last"]).max() < 1e-5
    assert len({str(result) for result in together.values()}) == len(each)


def test_a_weighted_row_decides_between_two_contradicting_ones() -> None:
    contradicting = Table(a=[3, 3, 0, 6], b=[3, 3, 0, 6], sum=[1, 5, 0, 2], weight=[1, 9, 1, 1])
    for settings in ({"batch_size": 24}, {"batch_size": 0}, {"batch_size": 0, "chunk": 2}):
        model = trained(recipe("mlp", 60, lr=0.01, **settings), ADD, contradicting)
        assert model.predict({"a": np.array([3]), "b": np.array([3])}).prediction.tolist() == [5]  # type: ignore[union-attr]


def test_a_weight_that_is_not_positive_is_refused() -> None:
    table = additions()
    table.columns["weight"][3] = 0
    with pytest.raises(ModelError, match="^toy on toy/toy: a training row has a weight that is not positive$"):
        trained(SHORT, ADD, table)


def test_steps_given_by_the_budget_win() -> None:
    remarks = Baseline(SHORT, ADD, 0, "toy/toy").fit(additions(), None, Budget("quick", steps=3))
    assert remarks["steps"] == 3
    assert remarks["replicas"] == 1
    assert 0 < remarks["loss"] < 10


def test_candidates_are_what_would_be_predicted_if_training_ended_there() -> None:
    """Where the schedule does not look ahead, the one of step s is a training of s steps."""
    member = Member(0, {})
    fit = fitted(made(candidates=3), [member, Member(1, {})])
    assert fit.candidates(member) == ["step-4", "step-8", "last"]
    result = answers(fit)
    for steps, name in ((4, "step-4"), (8, "step-8"), (12, "last")):
        (shorter,) = answers(fitted(made(steps=steps), [member])).values()
        assert np.abs(np.array(shorter) - result[f"0 {name}"]).max() < 1e-6


def test_more_candidates_than_steps_are_one_a_step() -> None:
    member = Member(0, {})
    assert fitted(made(steps=2, candidates=9), [member]).candidates(member) == ["step-1", "last"]


def test_a_replica_that_stopped_early_has_no_later_candidates_and_the_others_have() -> None:
    train = rows().train
    members = [Member(0, {"lr": 0.01}), Member(0, {"lr": 1.0})]
    fit = fitted(made(candidates=3, check_every=1, patience=1), members, given=FitInput(train, train))
    assert [fit.candidates(member) for member in members] == [["step-4", "step-8", "last"], ["last"]]
    result = answers(fit)
    assert len(result) == 4


def test_early_stopping_keeps_the_state_of_its_best_look() -> None:
    train = rows().train
    member = Member(0, {"lr": 1.0})
    stopped = fitted(made(check_every=1, patience=1), [member], given=FitInput(train, train))
    steps = int(stopped.remarks(member)["steps"])
    assert 1 < steps < 12
    (best,) = answers(fitted(made(steps=steps - 1), [member])).values()
    (stored,) = answers(stopped).values()
    assert np.abs(np.array(stored) - best).max() < 1e-6


def test_padding_is_no_target() -> None:
    words, target = torch.randn(1, 2, 3, 6), torch.tensor([[[4, 5, 2], [5, 2, 0]]])

    def loss(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return average_over_batch(
            cross_entropy(logits, ids), Batch((), ids, torch.zeros(ids.shape[:2], dtype=torch.int64))
        )

    apart = loss(words[:, :1], target[:, :1]) * 3 + loss(words[:, 1:, :2], target[:, 1:, :2]) * 2
    assert torch.allclose(loss(words, target), apart / 5)


def test_the_squared_loss_is_the_mean_over_rows_and_classes() -> None:
    out, target = torch.randn(1, 5, 7), torch.tensor([[0, 1, 2, 3, 6]])
    hot = torch.nn.functional.one_hot(target, 7).float()
    ours = average_over_batch(squared_error(out, target), Batch((), target, target))
    assert ours.item() == pytest.approx(torch.nn.functional.mse_loss(out, hot).item())


def test_texts_are_trained_and_asked_in_their_order() -> None:
    table = commands()
    model = trained(recipe("lstm", 3, width=16, batch_size=8), TURN, table)
    output = model.predict(table.only("command"))
    turned = model.predict({"command": table.columns["command"][::-1]})
    assert isinstance(output, list) and len(output) == 36
    assert output == turned[::-1]  # type: ignore[index]
