"""Rows that count more for a second network, and a head that is fitted to balanced rows."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.dfr import fit_heads
from farshift.baselines.algorithms.lff import generalised_cross_entropy
from farshift.baselines.algorithms.useful import cluster_in_two, find_harder_rows
from farshift.baselines.training.sampler import Sampler
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from .shifted_stacks import finished, near, wide_rows
from .small_stacks import ADAM, begun, encode, head, weights


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


def test_two_means_end_where_every_point_is_nearest_to_the_mean_of_its_own_cluster() -> None:
    built = torch.Generator().manual_seed(2)
    points = torch.randn(2, 50, 4, generator=built, dtype=torch.float64)
    target = torch.randint(4, (2, 50), generator=built)
    side = cluster_in_two(points, target)
    checked = 0
    for replica in range(2):
        for item in range(4):
            own = points[replica][target[replica] == item]
            ours = side[replica][target[replica] == item]
            centres = torch.stack([own[~ours].mean(0), own[ours].mean(0)])
            assert torch.equal(torch.cdist(own, centres).argmin(1).bool(), ours)
            checked += len(own)
    assert checked == 100


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


def test_the_generalised_cross_entropy_is_the_absolute_error_at_one_and_the_cross_entropy_near_nought() -> None:
    p = torch.tensor([[0.1, 0.5, 0.9]] * 3, dtype=torch.float64)
    result = generalised_cross_entropy(-p.log(), torch.tensor([1.0, 0.5, 1e-9], dtype=torch.float64))
    assert near(result[0], 1 - p[0])
    assert near(result[1], 2 * (1 - p[1].sqrt()))
    assert near(result[2], -p[2].log(), 1e-7)


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
    assert near(stack.answer(*data.inputs)[0], debiased)
    assert not near(biased, debiased)


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


def test_the_last_layer_alone_is_fitted_again_to_standardised_features_of_balanced_validation_rows() -> None:
    data = wide_rows(40)
    before = begun("erm", {}, {"lr": 0.05}, common=ADAM, data=data, steps=20)
    finished(before)
    training = begun(
        "dfr",
        {"inverse_strength": 3.0},
        {"inverse_strength": 0.3, "lr": 0.05},
        common=ADAM | {"draws": 2},
        data=data,
        steps=20,
    )
    stack = finished(training)
    val = data.held_out["id_val"]
    assert val.group is not None
    rows = stack.algorithm.balanced(val.group * 3 + val.target[0])
    for replica, c in enumerate((3.0, 0.3)):
        w, trained = weights(training, replica), weights(before, replica)
        assert all(torch.equal(w[name], trained[name]) for name in w if name.startswith("hidden"))
        z = encode(w, val.inputs[1]).detach()
        deviation = z.std(0, correction=0)
        scaled = (z - z.mean(0)) / torch.where(deviation > 0, deviation, 1.0)
        strength = torch.tensor([1 / (c * float(rows[replica, :, 0].sum()))], dtype=torch.float64)
        weight, bias = fit_heads(scaled[None], F.one_hot(val.target[0], 3).double(), rows[replica, None], strength)
        assert near(head(w, z), scaled @ weight[0].T + bias[0], 1e-8)
        assert not near(w["head.weight"], trained["head.weight"], 1e-3)
