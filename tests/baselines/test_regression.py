"""Networks whose answers are numbers: what they are trained on, by which loss, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import farshift as fs
import numpy as np
import pytest
import torch
from farshift import Answers
from farshift.baselines.algorithms._head import Curvature, compute_hessian_products, compute_output_gradients
from farshift.baselines.baseline import Baseline
from farshift.baselines.compatibility import check_task, find_networks_for
from farshift.baselines.encoding.encoding import Numbers, Sizes
from farshift.baselines.recipe import find_plugin_files, read_declaration
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training.losses import compute_task_loss
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.sampler import Batch, Data
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.model import Budget, Task
from farshift.core.errors import ModelError
from torch import Tensor

from .small_stacks import ADAM, FEATURES, PLAIN, batch_of, begun, clock_of, finished, wide_rows
from .toys import Rows, recipe, trained

ON_ALL = sorted(
    name
    for name in find_plugin_files("algorithms")
    if "regression" in read_declaration(name).tasks
    and "unlabelled" not in read_declaration(name).touches
    # Which need groups of validation rows, and windows of variables: test_algorithm_contract.py has them.
    and name not in ("adaptive_sampling", "step_by_step")
)


NUMBER = Task("regression", ("x",), "y")


def measured(rows: int = 60, seed: int = 0) -> Rows:
    """y = 100 + 30 x_0 - 20 x_1 and noise, in three environments of inputs that lie apart."""
    drawn = np.random.default_rng(seed)
    group = np.arange(rows) % 3
    x = drawn.normal(size=(rows, FEATURES)) + 0.5 * group[:, None]
    y = 100 + 30 * x[:, 0] - 20 * x[:, 1] + drawn.normal(size=rows)
    return Rows(x=x.astype(np.float32), y=y, group=group.astype(str))


def numbers() -> Data:
    """Rows and validation rows labelled with sums of their inputs."""
    data = wide_rows()
    parts = [replace(some, target=some.inputs[1].sum(1)[None]) for some in (data, data.held_out["id_val"])]
    return replace(parts[0], unlabelled=None, held_out={"id_val": parts[1]})


def answers(model: Baseline, rows: Rows) -> Any:
    result = model.predict(rows.only("x"))
    assert isinstance(result, Answers)
    assert result.scores is None
    return result.prediction


def test_numbers_are_learnt_in_units_of_training_and_answered_in_their_own() -> None:
    labels = np.array([1e6, 3e6, 5e6])
    numbers = Numbers(labels)
    encoded = numbers.encode(labels)
    assert encoded.dtype == torch.float32
    assert (float(encoded.mean()), float(encoded.std(correction=0))) == pytest.approx((0, 1))
    (result,) = numbers.answers(encoded[None, :, None], True)
    assert result.prediction.tolist() == pytest.approx(labels.tolist())


@pytest.mark.parametrize("labels", [[7.0, 7.0], [-1e300, 1e300], [0.0, 5e-324]], ids=["equal", "large", "small"])
def test_numbers_of_any_size_come_back(labels: list[float]) -> None:
    numbers = Numbers(np.array(labels))
    (result,) = numbers.answers(numbers.encode(np.array(labels))[None, :, None], True)
    assert result.prediction.tolist() == pytest.approx(labels, rel=1e-6)


def test_labels_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ModelError, match="a training label is not a finite number"):
        Numbers(np.array([1.0, np.nan]))


def test_published_settings_may_ask_for_numbers_as_they_are() -> None:
    assert Numbers(np.array([3.0, 9.0]), standardised=False).encode(np.array([3.0])).tolist() == [3]
    model = trained(recipe("linear", 3, batch_size=0, scaled=False), NUMBER, measured())
    assert model._trained.remarks["loss"] == pytest.approx(float(np.square(measured().columns["y"]).mean()), rel=0.01)


@pytest.mark.parametrize("scaled", [True, False])
def test_a_linear_network_comes_to_ordinary_least_squares(scaled: bool) -> None:
    rows, rate = measured(), 0.05 if scaled else 1.0
    built = recipe("linear", 1500, batch_size=0, lr=rate, schedule="cosine", weight_decay=0.0, scaled=scaled)
    result = answers(trained(built, NUMBER, rows), rows)
    x = np.concatenate([rows.columns["x"], np.ones((len(rows), 1))], axis=1)
    best, *_ = np.linalg.lstsq(x, rows.columns["y"], rcond=None)
    assert result == pytest.approx(x @ best, abs=0.05)


def terms(algorithm: str, **own: Any) -> tuple[list[float], list[float], Tensor, Tensor]:
    """The risk and the penalty of a batch, and its outputs and labels by environment, (3, rows)."""
    train = begun(algorithm, {}, common=PLAIN | {"width": 4} | own, data=numbers(), sizes=Sizes(1, numbers=FEATURES))
    batch = batch_of(train)
    risk, penalty = train.stack.algorithm.terms(train.stack.network, batch, clock_of(train))
    z = train.stack.network(*batch.inputs)[0, :, 0].detach()
    return risk.tolist(), penalty.tolist(), z.view(3, -1), batch.target[0].view(3, -1)


def test_irm_penalises_the_slope_of_each_environments_squared_error_by_a_scale_of_its_outputs() -> None:
    risk, penalty, outputs, labels = terms("irm", halves=False)
    w = torch.ones((), dtype=torch.float64, requires_grad=True)
    risks = [(w * z - y).square().mean() for z, y in zip(outputs, labels, strict=True)]
    slopes = [torch.autograd.grad(own, w)[0].item() for own in risks]
    assert risk == pytest.approx([np.mean([own.item() for own in risks])])
    assert penalty == pytest.approx([np.mean(np.square(slopes))])


def test_vrex_penalises_the_variance_of_the_environments_squared_errors() -> None:
    _, penalty, outputs, labels = terms("vrex")
    assert penalty == pytest.approx([(outputs - labels).square().mean(1).var(correction=0).item()])


def test_the_mix_of_two_squared_errors_has_the_gradient_of_the_error_to_the_mixed_number() -> None:
    outputs = torch.randn(2, 4, 1, dtype=torch.float64, requires_grad=True)
    own, other = torch.randn(2, 2, 4, dtype=torch.float64)
    mixed = 0.3 * compute_task_loss(outputs, own) + 0.7 * compute_task_loss(outputs, other)
    expected = compute_task_loss(outputs, 0.3 * own + 0.7 * other)
    assert torch.allclose(*(torch.autograd.grad(item.sum(), outputs)[0] for item in (mixed, expected)))


@pytest.mark.parametrize("algorithm", ON_ALL)
def test_a_replica_is_the_same_alone_or_among_others(algorithm: str) -> None:
    def trained_by(*each: dict[str, Any]) -> Tensor:
        common, sizes = ADAM | {"width": 4}, Sizes(1, numbers=FEATURES)
        stack = finished(begun(algorithm, *each, common=common, data=numbers(), sizes=sizes))
        return torch.cat([parameter.detach().flatten(1) for parameter in stack.network.parameters()], dim=1)

    first, second, third = trained_by({}, {"lr": 0.03}, {})
    torch.testing.assert_close(first, trained_by({})[0], rtol=1e-9, atol=1e-9)
    assert not torch.equal(first, second)
    assert not torch.equal(first, third)


def test_replicas_that_are_trained_together_answer_as_alone() -> None:
    rows, built = measured(), recipe("mlp", 30, lr=0.01, width=8)
    members = [Member(0, {}), Member(1, {}), Member(0, {"lr": 0.1})]
    fit = ReplicaGroup(built, NUMBER, members, "toy/toy").fit(FitInput(rows, None), Budget("quick"))
    for member in members:
        alone = Baseline(built, NUMBER, member.seed, "toy/toy", member.settings)
        alone.fit(rows, None, Budget("quick"))
        together = fit.replica(member).predict(rows.only("x"))
        assert isinstance(together, Answers)
        assert together.prediction == pytest.approx(answers(alone, rows), rel=1e-4)


def test_rows_are_mixed_by_an_augmentation_with_their_numbers() -> None:
    rows = measured()
    result = answers(trained(recipe("linear", 800, augment="mixup", lr=0.1, batch_size=0), NUMBER, rows), rows)
    assert np.corrcoef(result, rows.columns["y"])[0, 1] > 0.95


def test_networks_of_classes_do_numbers_and_those_of_texts_do_not() -> None:
    assert {"linear", "mlp", "deep_sets"} <= set(find_networks_for(NUMBER, images=False))
    with pytest.raises(
        ModelError, match="the network lstm is for sequence tasks, and this is a regression task: use --netw"
    ):
        check_task(recipe("lstm"), NUMBER)


@pytest.mark.parametrize("algorithm", ["gce", "sd", "jtt", "elr"])
def test_an_algorithm_of_classes_refuses_numbers(algorithm: str) -> None:
    message = f"toy: the algorithm {algorithm} is for classification .*tasks, and this is a regression task"
    with pytest.raises(ModelError, match=message):
        check_task(recipe("mlp", algorithm=algorithm), NUMBER)


@pytest.mark.parametrize("setting", [{"label_smoothing": 0.1}, {"loss": "squared"}])
def test_settings_of_classes_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="settings loss and label_smoothing: regression uses the squared error"):
        trained(recipe("mlp", **setting), NUMBER, measured())


def test_texts_are_read_for_a_number_too() -> None:
    texts = np.array(["low", "middle", "high"] * 8, dtype=object)
    rows = Rows(x=texts, y=np.tile([-1.0, 0.0, 1.0], 8))
    task = Task("regression", ("x",), "y")
    model = trained(recipe("linear", 400, lr=0.05, batch_size=0), task, rows)
    assert answers(model, rows) == pytest.approx(rows.columns["y"], abs=0.05)


@pytest.mark.slow
def test_the_setting_of_least_error_on_validation_rows_is_chosen(tmp_path: Path) -> None:
    on, settings = "linear_unit_test_1/shuffled", {"slow": {"lr": 1e-6}, "fast": {"lr": 0.03}}
    given: dict[str, Any] = {"seeds": 1, "steps": 40, "selection": "id_val"}
    run = run_baseline("linear", on, out=tmp_path / "both", settings=settings, **given)
    fast = run_baseline("linear", on, out=tmp_path / "fast", settings={"fast": settings["fast"]}, **given)
    slow = run_baseline("linear", on, out=tmp_path / "slow", settings={"slow": settings["slow"]}, **given)
    result, better, worse = (fs.score(item).id.value for item in (run, fast, slow))
    assert result == better < worse


def closed_form(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], group: np.ndarray[Any, Any], gamma: float) -> Any:
    """Least squares after (I - P) + sqrt(gamma) P, P the projection on environments, all centred (section 2.1)."""
    x, y = x - x.mean(0), y - y.mean()
    one_hot = (group[:, None] == np.unique(group)).astype(float)
    projection = one_hot @ np.linalg.solve(one_hot.T @ one_hot, one_hot.T)
    turn = np.eye(len(y)) - projection + np.sqrt(gamma) * projection
    return np.linalg.lstsq(turn @ x, turn @ y, rcond=None)[0]


@pytest.mark.parametrize(("penalty", "steps"), [(0.0, 500), (20.0, 2000)])
def test_a_linear_network_comes_to_the_closed_form(penalty: float, steps: int) -> None:
    rows = measured()
    x, group = rows.columns["x"].astype(float), rows.columns["group"]
    y = rows.columns["y"] / 10 + 3 * (group == "1")
    rows.columns["y"] = y
    settings = {"batch_size": 0, "lr": 0.3, "schedule": "cosine", "weight_decay": 0.0, "scaled": False}
    result: Any = trained(recipe("linear", steps, "anchor", penalty=penalty, **settings), NUMBER, rows)
    predicted = result.predict(rows.only("x")).prediction
    best = closed_form(x, y, group, 1 + penalty)
    assert predicted == pytest.approx((x - x.mean(0)) @ best + y.mean(), abs=0.02)
    other = closed_form(x, y, group, 21 - penalty)
    assert np.abs(predicted - ((x - x.mean(0)) @ other + y.mean())).max() > 0.1


def test_the_gradients_of_rows_by_the_head_are_those_of_the_squared_error() -> None:
    drawn = torch.Generator().manual_seed(0)
    features, label = torch.randn(6, 4, dtype=torch.float64, generator=drawn), torch.arange(6.0).double()
    head = torch.randn(1, 4, dtype=torch.float64, generator=drawn, requires_grad=True)
    outputs = features @ head.T
    batch = Batch((), label[None], torch.arange(6)[None], environments=2)
    errors = compute_output_gradients(outputs[None], batch).view(6, 1)
    for row in range(6):
        (slope,) = torch.autograd.grad((outputs[row, 0] - label[row]).square(), head, retain_graph=True)
        torch.testing.assert_close(errors[row][:, None] * features[row], slope)


def test_a_product_with_the_hessian_is_that_of_the_whole_matrix() -> None:
    drawn = torch.Generator().manual_seed(0)
    features, outputs = (torch.randn(7, size, dtype=torch.float64, generator=drawn) for size in (4, 1))
    directions = torch.randn(3, 1, 4, dtype=torch.float64, generator=drawn)
    weight, labels = torch.randn(1, 4, dtype=torch.float64, generator=drawn), outputs[:, 0]
    full = torch.autograd.functional.hessian(lambda w: (features @ w[0] - labels).square().mean(), weight)
    expected = torch.einsum("aibj,sbj->sai", full, directions)
    torch.testing.assert_close(
        compute_hessian_products(Curvature(outputs, numeric=True), features, directions), expected
    )


@pytest.mark.parametrize("algorithm", ["fishr", "hgp", "hutchinson"])
def test_environments_of_the_same_rows_are_not_penalised(algorithm: str) -> None:
    train = begun(algorithm, {}, common=PLAIN | {"width": 4}, data=numbers(), sizes=Sizes(1, numbers=FEATURES))
    batch = batch_of(train)
    for values in (*batch.inputs, batch.target):
        values[:] = values[:, : values.shape[1] // 3].repeat(1, 3, *[1] * (values.ndim - 2))
    _, penalty = train.stack.algorithm.terms(train.stack.network, batch, clock_of(train))
    assert penalty.tolist() == pytest.approx([0.0], abs=1e-20)
