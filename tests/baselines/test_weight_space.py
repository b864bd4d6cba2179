"""Methods in weight space: averages of weights, weights held to or between early and last ones, heads fitted again."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms._norms import recompute_running_moments, use_batch_moments
from farshift.baselines.algorithms.dfr import fit_heads
from farshift.baselines.algorithms.erm_plus_plus import Plateau
from farshift.baselines.algorithms.lines import find_parameter_depths
from farshift.baselines.algorithms.miro import compute_block_states, compute_variational_bound
from farshift.baselines.algorithms.useful import cluster_in_two, find_harder_rows
from farshift.baselines.layers.norm import BatchNorm
from farshift.baselines.training.sampler import Sampler
from farshift.baselines.training.trainer import Training
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from .small_stacks import (
    ADAM,
    IMAGES,
    PLAIN,
    RESNET,
    asked,
    batch_of,
    begun,
    close,
    encode,
    finished,
    head,
    steps_of,
    weights,
    wide_rows,
)


def history(training: Training) -> list[list[Tensor]]:
    """All parameters after each step; the training is left at its end."""
    result = []
    for _ in steps_of(training):
        if training.total:
            result.append([p.detach().clone() for p in training.stack.network.parameters()])
    return [*result, [p.detach().clone() for p in training.stack.network.parameters()]]


def parameters(training: Training) -> list[Tensor]:
    return list(finished(training).network.parameters())


def plain(algorithm: str, *each: dict[str, float], **settings: object) -> Training:
    return begun(algorithm, *each, common=ADAM | settings, steps=12)


def agree(found: list[Tensor], expected: list[Tensor]) -> bool:
    return all(close(item, other) for item, other in zip(found, expected, strict=True))


@pytest.mark.parametrize(("every", "taken"), [(1, [7, 8, 9, 10, 11, 12]), (2, [8, 10, 12]), (4, [10])])
def test_the_averaged_weights_are_the_mean_of_those_after_every_so_many_steps(every: int, taken: list[int]) -> None:
    settings = {"start_percent": 50, "every": every}
    passed = history(plain("swa", {}, {"lr": 0.05}, **settings))
    expected = [torch.stack(tensors).mean(0) for tensors in zip(*(passed[step - 1] for step in taken), strict=True)]
    assert agree(parameters(plain("swa", {}, {"lr": 0.05}, **settings)), expected)
    assert not agree(expected, passed[-1])


def test_a_checkpoint_from_before_the_average_begins_holds_the_weights_as_they_are() -> None:
    passed = history(plain("swa", {}))
    outcome = plain("swa", {}, candidates=3).run()
    first = outcome.candidates[0]
    assert first[0] == "step-4"
    assert agree(list(first[1].network.parameters()), passed[3])


def test_a_checkpoint_from_before_the_early_weights_is_not_interpolated() -> None:
    passed = history(plain("wise_ft", {}, early_percent=50))
    outcome = plain("wise_ft", {}, early_percent=50, candidates=4).run()
    assert agree(list(outcome.candidates[0][1].network.parameters()), passed[2])


def test_a_network_of_one_layer_keeps_alpha_plus_beta_of_its_change() -> None:
    def made() -> Training:
        return begun("lines", {"alpha": 0.2, "beta": 0.3}, network="linear", common={"batch_size": 4}, steps=8)

    passed = history(made())
    assert agree(parameters(made()), [item + 0.5 * (b - item) for item, b in zip(passed[1], passed[-1], strict=True)])


def test_layers_are_counted_in_the_order_of_a_network_and_shared_weights_once() -> None:
    first = nn.Linear(2, 2)
    network = nn.Sequential(first, nn.ReLU(), nn.Sequential(nn.LayerNorm(2), first), nn.Linear(2, 1, bias=False))
    assert find_parameter_depths(network) == [0, 0, 1, 1, 2]


def test_after_averaging_batch_normalisation_has_the_mean_moments_of_the_training_rows() -> None:
    data = wide_rows(sizes=IMAGES)
    stack = finished(begun("swa", {}, {"lr": 0.02}, network="resnet", common=RESNET, data=data, sizes=IMAGES))
    norm = next(module for module in stack.network.modules() if isinstance(module, BatchNorm))
    convolution = stack.network.body[0].convolution
    image = stack.network.embed(*(x.expand(2, *x.shape) for x in data.inputs))
    y = convolution(image)
    oracle = [nn.BatchNorm2d(2, momentum=None, dtype=torch.float64) for _ in range(2)]
    for item, part in zip(oracle, y, strict=True):
        item(part)
    assert close(norm.running_mean, torch.stack([item.running_mean for item in oracle]))
    biased = torch.stack([item.running_var for item in oracle])
    assert close(norm.running_var, biased)


def test_moments_taken_over_several_batches_are_those_of_torch_with_a_cumulative_mean() -> None:
    data = wide_rows(20, sizes=IMAGES)
    network = begun("erm", {}, network="resnet", common=RESNET, data=data, sizes=IMAGES).stack.network
    recompute_running_moments(network, data, rows=7)
    first = network.body[0]
    oracle = nn.BatchNorm2d(2, momentum=None, dtype=torch.float64)
    for piece in range(3):
        oracle(first.convolution(network.embed(*(x[None, piece::3] for x in data.inputs)))[0])
    assert close(first.norm.running_mean[0], oracle.running_mean)
    assert close(first.norm.running_var[0], oracle.running_var)
    assert network.training


def test_normalising_by_the_batch_leaves_the_running_moments_and_the_layers_as_they_were() -> None:
    data = wide_rows(sizes=IMAGES)
    stack = finished(begun("erm", {}, network="resnet", common=RESNET, data=data, sizes=IMAGES, steps=2))
    before = {name: value.clone() for name, value in stack.network.state_dict().items()}
    as_trained = asked(stack, data)
    with torch.no_grad(), use_batch_moments(stack.network, 0.0):
        by_their_own = stack.network(*(x[None] for x in data.inputs))
    assert all(torch.equal(before[name], value) for name, value in stack.network.state_dict().items())
    assert torch.equal(asked(stack, data), as_trained)
    assert not close(by_their_own, as_trained)


def test_a_training_shorter_than_a_window_answers_with_its_last_weights_averaged() -> None:
    training = begun("swad", {}, {}, common=ADAM | {"looks": 2}, data=wide_rows(), steps=4)
    passed = history(begun("erm", {}, {}, common=ADAM, data=wide_rows(), steps=4))
    expected = [torch.stack(tensors).mean(0) for tensors in zip(*passed[2:], strict=True)]
    assert all(close(item, other) for item, other in zip(parameters(training), expected, strict=True))
    assert finished(begun("swad", {}, {}, common=ADAM, data=wide_rows(), steps=1))


STEPS = 24
OWN = {"warm_percent": 25, "start_percent": 50, "looks": 12, "lr_head": 0.3, "lr": 0.4}


def training(*each: dict[str, Any], **own: Any) -> Training:
    return begun("erm_plus_plus", *each, common=ADAM | {"optimiser": "sgd"} | OWN | own, data=wide_rows(), steps=STEPS)


def test_the_rate_is_cut_as_by_torchs_reduction_on_a_plateau_until_the_third_time() -> None:
    losses = np.random.default_rng(1).uniform(0.9, 1, (40, 60)) * np.linspace(1, 0.8, 60)
    plateau = Plateau(torch.ones(40, dtype=torch.float64))
    parameter = torch.nn.Parameter(torch.zeros(()))
    optimisers = [torch.optim.SGD([parameter], lr=1.0) for _ in losses]
    schedules = [torch.optim.lr_scheduler.ReduceLROnPlateau(item, "min", patience=1, eps=0) for item in optimisers]
    stopped = 0
    for position in range(60):
        plateau.look(torch.from_numpy(losses[:, position]))
        for schedule, loss in zip(schedules, losses[:, position], strict=True):
            schedule.step(loss)
        expected = [rate if (rate := item.param_groups[0]["lr"]) > 0.005 else 0.0 for item in optimisers]
        assert plateau.factor.tolist() == pytest.approx(expected)
        stopped = expected.count(0.0)
    assert stopped > 0


def test_after_the_head_alone_all_weights_move_at_the_rate_that_the_plateau_leaves() -> None:
    built = training({}, {}, momentum=0.0)
    for _ in range(6):
        built.step()
    built.stack.algorithm.plateau.factor.copy_(torch.tensor([1.0, 0.1], dtype=torch.float64))
    batch, before = batch_of(built), [weights(built, k) for k in (0, 1)]
    built.step()
    for k, (w, rate) in enumerate(zip(before, (0.4, 0.04), strict=True)):
        loss = F.cross_entropy(head(w, encode(w, batch.inputs[1][k])), batch.target[k])
        slopes = torch.autograd.grad(loss, list(w.values()))
        for (name, value), slope in zip(weights(built, k).items(), slopes, strict=True):
            assert close(value, w[name] - rate * slope), name


def test_an_epoch_of_the_second_stage_holds_each_wrong_row_as_often_as_it_counts() -> None:
    data = wide_rows()
    training = begun("jtt", {}, common=ADAM | {"first_percent": 30, "upweight": 3}, data=data, steps=10)
    for _ in range(3):
        training.step()
    total = int(training.data.weight.sum())
    assert len(data) < total < 3 * len(data)
    epoch = Sampler(training.data, training.stack.keys, training.stack.hyperparameters, False).orders[0].draw(0, total)
    assert torch.bincount(epoch[0]).tolist() == training.data.weight[0].long().tolist()


def test_two_means_of_each_class_are_those_of_scikit_learn_where_classes_have_two_clumps() -> None:
    built = np.random.default_rng(3)
    target = np.arange(60) % 3
    clump = built.integers(0, 2, 60)
    points = built.normal(size=(60, 3)) + 8 * clump[:, None] * np.eye(3)[target] + 5 * target[:, None]
    result = cluster_in_two(torch.from_numpy(points)[None], torch.from_numpy(target)[None])[0].numpy()
    for item in range(3):
        oracle = KMeans(2, n_init=10, random_state=0).fit(points[target == item]).labels_
        own = result[target == item]
        assert (own == (oracle == oracle[0])).all() or (own != (oracle == oracle[0])).all()


def test_a_class_of_equal_points_is_one_cluster_and_none_of_its_rows_counts_more() -> None:
    points = torch.tensor([[[1.0, 2], [1, 2], [1, 2], [0, 5], [9, 0]]], dtype=torch.float64)
    target = torch.tensor([[0, 0, 0, 1, 1]])
    side = cluster_in_two(points, target)
    assert len(set(side[0, :3].tolist())) == 1
    assert side[0, 3] != side[0, 4]
    losses = torch.tensor([[3.0, 3, 3, 1, 2]], dtype=torch.float64)
    assert find_harder_rows(losses, side, target, 2).tolist() == [[False, False, False, False, True]]


def test_the_harder_cluster_of_each_class_is_the_one_with_the_higher_mean_loss() -> None:
    built = torch.Generator().manual_seed(4)
    losses = torch.rand(2, 40, generator=built, dtype=torch.float64)
    side, target = torch.rand(2, 40, generator=built) > 0.5, torch.randint(3, (2, 40), generator=built)
    result = find_harder_rows(losses, side, target, 3)
    for replica in range(2):
        for item in range(3):
            own = target[replica] == item
            means = [losses[replica][own & (side[replica] == half)].mean() for half in (False, True)]
            assert torch.equal(result[replica][own], side[replica][own] == bool(means[1] > means[0]))


def test_rows_learned_late_are_taken_twice_by_a_fresh_network() -> None:
    data = wide_rows()
    training = begun("useful", {}, {"lr": 0.3}, common=ADAM | {"first_percent": 40}, data=data, steps=10)
    for _ in range(4):
        training.step()
    assert training.stages == (4, 6)
    accepted = training.data.weight
    assert set(accepted.flatten().tolist()) == {1.0, 2.0}
    assert not torch.equal(accepted[0], accepted[1])
    again = begun("useful", {}, {"lr": 0.3}, common=ADAM | {"first_percent": 80}, data=data, steps=10)
    for _ in range(4):
        again.step()
    logits = again.stack.answer(*data.inputs)
    target = data.target.expand(2, -1)
    losses = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view(2, -1)
    late = find_harder_rows(losses, cluster_in_two(logits, target), target, 3)
    assert torch.equal(accepted == 2, late)


def biased_and_debiased(w: dict[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """The logits of both plain networks, the debiased one first."""
    pair = []
    for member in ("first", "second"):
        own = {name.removeprefix(f"{member}."): value for name, value in w.items() if name.startswith(f"{member}.")}
        pair.append(head(own, encode(own, x)))
    return pair[0], pair[1]


def test_what_is_predicted_is_the_debiased_networks() -> None:
    data = wide_rows()
    training = begun("lff", {}, data=data, steps=3)
    stack = finished(training)
    debiased, biased = biased_and_debiased(weights(training, 0), data.inputs[1])
    assert close(stack.answer(*data.inputs)[0], debiased)
    assert not close(biased, debiased)


def test_the_heads_are_those_of_scikit_learn_on_each_subset_and_their_mean() -> None:
    built = torch.Generator().manual_seed(8)
    x = torch.randn(2, 60, 4, generator=built, dtype=torch.float64)
    label = torch.randint(3, (60,), generator=built)
    x[..., 0] += label
    x = (x - x.mean(1, keepdim=True)) / x.std(1, correction=0, keepdim=True)
    rows = (torch.rand(2, 60, 2, generator=built) < 0.7).double()
    rows[:, :, 1] = 1
    strength = torch.tensor([0.02, 0.1], dtype=torch.float64)
    weight, bias = fit_heads(x, F.one_hot(label, 3).double(), rows, strength)
    for replica in range(2):
        coefficients, intercepts = [], []
        for draw in range(2):
            some = rows[replica, :, draw].bool().numpy()
            c = 1 / (float(strength[replica]) * some.sum())
            oracle = LogisticRegression(l1_ratio=1.0, solver="saga", C=c, tol=1e-9, max_iter=20000)
            oracle.fit(x[replica].numpy()[some], label.numpy()[some])
            coefficients.append(oracle.coef_)
            intercepts.append(oracle.intercept_ - oracle.intercept_.mean())
        own = bias[replica] - bias[replica].mean()
        assert np.allclose(weight[replica].numpy(), np.mean(coefficients, axis=0), atol=1e-4)
        assert np.allclose(own.numpy(), np.mean(intercepts, axis=0), atol=1e-3)
    assert (weight[1] == 0).any(), "the penalty leaves weights out"


def test_the_subsets_hold_as_many_rows_of_every_group_as_the_smallest_has() -> None:
    training = begun("dfr", {}, {}, data=wide_rows())
    group = torch.tensor([0] * 7 + [3] * 4 + [5] * 9)
    rows = training.stack.algorithm.balanced(group)
    assert rows.shape == (2, 20, 10)
    for name in (0, 3, 5):
        assert (rows[:, group == name].sum(1) == 4).all()
    assert not torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[..., 0], rows[..., 1])


@pytest.mark.parametrize(("shape", "channels"), [((2, 4, 3, 5, 6), 2), ((2, 4, 7, 3), 3), ((2, 4, 3), 2)])
def test_the_bound_is_a_gaussians_with_a_variance_for_each_channel(shape: tuple[int, ...], channels: int) -> None:
    drawn = torch.Generator().manual_seed(0)
    state, before = torch.randn(2, *shape, generator=drawn, dtype=torch.float64)
    spread = torch.randn(2, 3, generator=drawn, dtype=torch.float64)
    result = compute_variational_bound(state, before, spread)
    for replica in range(2):
        total = 0.0
        for channel in range(3):
            v = math.log1p(math.exp(spread[replica, channel])) + 1e-5
            apart = (state - before)[replica].select(channels - 1, channel)
            total += ((apart**2 / v + math.log(v)) / 2).mean().item() / 3
        assert result[replica].item() == pytest.approx(total, abs=1e-12)


def test_after_plain_training_features_are_held_to_what_they_were() -> None:
    built, plain = (begun(name, {}, {}, common=PLAIN, steps=6) for name in ("miro", "erm"))
    for _ in range(3):
        built.step(), plain.step()
    oracle = dict(built.stack.algorithm.oracle.named_parameters())  # type: ignore[union-attr]
    assert all(torch.equal(oracle[name], value) for name, value in plain.stack.network.named_parameters())
    built.step(), plain.step()
    assert all(torch.equal(built.stack.algorithm.oracle.state_dict()[name], value) for name, value in oracle.items())  # type: ignore[union-attr]
    assert not close(built.losses, plain.losses)


def test_a_pretrained_network_is_held_to_its_pretrained_states(folders: dict[str, str]) -> None:
    pytest.importorskip("transformers")
    from .pretrained_stacks import start, trained

    for kind in ("vit", "resnet"):
        folder = folders[kind]
        alone, together = (trained(kind, folder, names, "miro") for names in (["b"], ["a", "b"]))
        assert alone.outcome.losses[0] == pytest.approx(together.outcome.losses[1], abs=1e-5)
        algorithm, pretrained = together.stack.algorithm, start(kind, folder)
        for name, value in algorithm.oracle.state_dict().items():  # type: ignore[union-attr, operator]
            if "body" in name and "num_batches" not in name:
                assert torch.equal(value[0], pretrained[name]), name
        inputs = tuple(x[:3].expand(2, *x[:3].shape) for x in together.data.inputs)
        result = compute_block_states(together.stack.network, inputs)[1]
        assert len(result) == len(list(algorithm.spreads.parameters())) > 1  # type: ignore[union-attr, arg-type]
        assert all(state.shape[:2] == (2, 3) for state in result)
