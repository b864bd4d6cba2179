"""Algorithms for wrong and uneven labels, by their definitions row by row, for replicas with settings of their own."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import confident_learning as cl
from farshift.baselines.algorithms._rows import compute_selected_mean
from farshift.baselines.algorithms.bi_tempered import tempered_log_softmax
from farshift.baselines.algorithms.cvar_dro import compute_cvar
from farshift.baselines.algorithms.dividemix import FLOOR, ROUNDS, compute_lower_posterior
from farshift.baselines.algorithms.forward_correction import estimate_transition
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.replicas.rng import make_keys
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Batch, Data
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from .small_stacks import CLASSES, PLAIN, begun, clock_of, close, encode, head, moved_along, rows, weights

FULL = PLAIN | {"batch_size": 0}


def test_label_smoothing_begins_after_its_share_of_the_steps() -> None:
    early, late = ({"rate": -0.5, "start": start} for start in (0.0, 0.5))
    plain = begun("label_smoothing", early, late, {"rate": 0.0}, common=FULL, steps=4, names=["a"] * 3)
    losses = []
    for _ in range(4):
        plain.step()
        losses.append(plain.losses)
    table = torch.stack(losses)
    assert torch.equal(table[:2, 1], table[:2, 2])
    assert (table[2:, 1] != table[2:, 2]).all()
    assert table[0, 0] != table[0, 1]


def exp_t(x: float, t: float) -> float:
    return math.exp(x) if t == 1 else max(0.0, 1 + (1 - t) * x) ** (1 / (1 - t))


def tempered(scores: list[float], t: float) -> list[float]:
    """By a bracketed root search for the normaliser."""
    low, high = max(scores) - 1, max(scores) + 1e6
    shift = brentq(lambda c: sum(exp_t(a - c, t) for a in scores) - 1, low + 1, high, xtol=1e-13, rtol=1e-15)
    return [exp_t(a - shift, t) for a in scores]


@pytest.mark.parametrize("t", [1.0, 1.0001, 1.2, 2.0, 4.0])
def test_the_tempered_softmax_sums_to_one_and_equals_a_bracketed_search(t: float) -> None:
    scores = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 5
    result = tempered_log_softmax(scores, torch.tensor(t, dtype=torch.float64).view(1, 1, 1)).exp()
    expected = torch.tensor([tempered(row, t) for row in scores.flatten(0, 1).tolist()], dtype=torch.float64)
    torch.testing.assert_close(result.flatten(0, 1), expected, rtol=0, atol=1e-10)


def test_a_bi_tempered_network_predicts_its_tempered_softmax() -> None:
    built, inputs = begun("bi_tempered", {"t1": 0.5, "t2": 2.0}).stack, rows().inputs
    scores = built.network(*(x[None] for x in inputs))[0].tolist()
    expected = torch.tensor([tempered(row, 2.0) for row in scores], dtype=torch.float64)
    assert close(built.answer(*inputs)[0].softmax(-1), expected)


def test_bootstrapping_mixes_the_label_with_the_class_believed_in() -> None:
    training = begun("bootstrapping", {"beta": 0.8, "belief": "hard"}, {"beta": 0.6, "belief": "hard"})
    logits, label = (x.expand(2, *x.shape) for x in some_answers())
    result = training.stack.algorithm.errors(logits, label, clock_of(training))
    for k, beta in enumerate((0.8, 0.6)):
        own, believed = (F.one_hot(ids, CLASSES).double() for ids in (label[k], logits[k].argmax(-1)))
        expected = -((beta * own + (1 - beta) * believed) * logits[k].log_softmax(-1)).sum(-1)
        assert close(result[k], expected)


TRANSITION = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]], dtype=torch.float64)


def corrected(name: str, logits: Tensor, label: Tensor, **given: float) -> Tensor:
    """The corrected loss under a matrix that is known, of every row."""
    algorithm: Any = begun(name, given).stack.algorithm
    algorithm.transition = TRANSITION[None]
    result: Tensor = algorithm.corrected(logits[None], label[None])[0]
    return result


def some_answers() -> tuple[Tensor, Tensor]:
    logits = torch.randn(9, CLASSES, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return logits, torch.arange(9) % CLASSES


def test_backward_correction_may_go_half_the_way_to_the_identity() -> None:
    logits, label = some_answers()
    half = torch.linalg.inv((TRANSITION + torch.eye(3, dtype=torch.float64)) / 2)
    result = corrected("backward_correction", logits, label, identity=0.5)
    torch.testing.assert_close(result, (half[label] * -logits.log_softmax(-1)).sum(-1), rtol=0, atol=1e-12)


def test_a_row_that_is_wholly_right_has_no_focal_loss_and_no_slope() -> None:
    training = begun("focal", {"gamma": 0.5}, common=FULL)
    network = training.stack.network
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1e6)  # all answers are certain
    training.step()
    assert torch.isfinite(training.losses).all()
    assert all(torch.isfinite(parameter).all() for parameter in network.parameters())


def test_crt_fits_a_fresh_head_to_classes_in_equal_shares_and_leaves_the_features() -> None:
    training = begun("crt", {}, {}, common=FULL | {"first_percent": 50}, steps=4)
    x, label = rows().inputs[1], rows().target[0]
    share = 1 / torch.bincount(label, minlength=CLASSES).double()
    for _ in range(2):
        training.step()
    head_weight, _ = training.stack.algorithm.fresh.values
    assert torch.equal(training.stack.network.head.weight, head_weight)
    assert not torch.equal(*head_weight), "each replica has a head of its own"
    for _ in range(2):
        before = [weights(training, k) for k in (0, 1)]
        losses = [F.cross_entropy(head(w, encode(w, x).detach()), label, share) for w in before]
        training.step()
        assert moved_along(training, before, losses)


@given(
    errors=st.lists(st.floats(0, 10), min_size=1, max_size=8),
    alpha=st.floats(0.01, 1.0),
    seed=st.integers(0, 99),
)
def test_cvar_is_the_largest_mean_under_its_weights(errors: list[float], alpha: float, seed: int) -> None:
    """Held to SciPy's linear programme, with rows that weigh."""
    weight = np.random.default_rng(seed).integers(1, 4, len(errors)).astype(float)
    most = weight / (alpha * weight.sum())
    best = linprog(
        -np.array(errors), A_eq=np.ones((1, len(errors))), b_eq=[1.0], bounds=list(zip(0 * most, most, strict=True))
    )
    result = compute_cvar(
        torch.tensor([errors], dtype=torch.float64),
        torch.tensor(weight)[None],
        torch.tensor([[alpha]], dtype=torch.float64),
    )
    assert float(result) == pytest.approx(-best.fun, abs=1e-7)


NAMES = "elr", "sop", "ps_kd"


def test_u_of_sparse_over_parameterisation_descends_the_cross_entropy_alone() -> None:
    training = begun("sop", {"u_lr": 10.0}, {"u_lr": 1.0}, common=FULL)
    algorithm, data = training.stack.algorithm, rows()
    algorithm.u += 0.1  # large enough that its part in the loss is seen
    algorithm.v += 0.1
    before, label = [weights(training, k) for k in (0, 1)], F.one_hot(data.target[0], CLASSES).double()
    u, v = algorithm.u.clone().requires_grad_(), algorithm.v.clone()
    training.step()
    for k, (w, rate) in enumerate(zip(before, (10.0, 1.0), strict=True)):
        up, down = (square.clamp(max=1) for square in (u[k] ** 2 * label, v[k] ** 2 * (1 - label)))
        q = (head(w, encode(w, data.inputs[1])).softmax(-1) + up - down).clamp(min=1e-4)
        q = (q / q.sum(-1, keepdim=True)).clamp(min=1e-4)
        (slope,) = torch.autograd.grad(-(label * q.log()).sum(-1).mean(), u)
        assert close(algorithm.u[k], u[k] - rate * slope[k])


def test_a_row_drawn_twice_in_a_batch_gets_the_sum_of_its_gradients_in_u() -> None:
    data = rows()
    weight = torch.zeros(1, len(data), dtype=torch.float64)
    weight[0, 3] = 1
    alone = data.changed(weight, data.target)
    built = [begun("sop", {"batch_size": size}, data=alone, steps=1) for size in (1, 4)]
    for training in built:
        training.stack.algorithm.u += 0.1
        training.step()
    torch.testing.assert_close(built[0].stack.algorithm.u, built[1].stack.algorithm.u, rtol=0, atol=1e-12)
    assert built[0].stack.algorithm.u[0, 3] != pytest.approx(0.1)


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_of_the_rows_that_were_drawn(name: str) -> None:
    training = begun(name, {}, {}, common=PLAIN | {"batch_size": 3})
    table = {"elr": "believed", "sop": "v", "ps_kd": "past"}[name]
    before = getattr(training.stack.algorithm, table).clone()
    drawn = training.sampler.batch(0).rows
    training.step()
    moved = (getattr(training.stack.algorithm, table) != before).any(-1)
    for position in range(2):
        assert moved[position].nonzero()[:, 0].tolist() == sorted(drawn[position].tolist())


def test_the_mean_of_no_row_is_zero_and_pulls_at_nothing() -> None:
    errors = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    batch = Batch(
        (), torch.zeros(2, 3).long(), torch.arange(3).expand(2, -1), weight=torch.tensor([[1.0, 2.0, 1.0]] * 2)
    )
    result = compute_selected_mean(errors, torch.tensor([[False] * 3, [True, True, False]]), batch)
    (gradient,) = torch.autograd.grad(100 * result.sum(), errors)
    assert result.tolist() == [0, 1]
    torch.testing.assert_close(gradient, torch.tensor([[0.0] * 3, [100 / 3, 200 / 3, 0.0]], dtype=torch.float64))


def losses_of_two_kinds() -> Tensor:
    generator = torch.Generator().manual_seed(4)
    low = torch.rand(2, 60, generator=generator, dtype=torch.float64) * 0.3
    high = 0.5 + torch.randn(2, 40, generator=generator, dtype=torch.float64) * torch.tensor([[0.05], [0.2]])
    return torch.cat([low, high], dim=1)


def test_the_mixture_of_losses_is_that_of_scikit_learn_from_the_same_beginning() -> None:
    values = losses_of_two_kinds()
    result = compute_lower_posterior(values)
    for position, row in enumerate(values.numpy()):
        middle = (row.min() + row.max()) / 2
        for _ in range(ROUNDS):
            upper = row > middle
            middle = (row[upper].mean() + row[~upper].mean()) / 2
        parts = [row[~(row > middle)], row[row > middle]]
        model = GaussianMixture(
            2,
            max_iter=ROUNDS,
            tol=0.0,
            reg_covar=FLOOR,
            weights_init=[len(part) / len(row) for part in parts],
            means_init=[[part.mean()] for part in parts],
            precisions_init=[[[1 / (part.var() + FLOOR)]] for part in parts],
            random_state=0,
        )
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(row[:, None])
        expected = model.predict_proba(row[:, None])[:, model.means_.argmin()]
        np.testing.assert_allclose(result[position].numpy(), expected, atol=1e-9)


def test_the_mixture_tells_two_kinds_of_losses_apart_and_bears_equal_ones() -> None:
    result = compute_lower_posterior(losses_of_two_kinds())
    assert ((result[0] > 0.5) == (torch.arange(100) < 60)).all()
    assert torch.isfinite(compute_lower_posterior(torch.full((1, 5), 0.25))).all()


MIX = {"warm_percent": 25, "ramp_percent": 50.0}


def test_dividemix_divides_the_rows_where_training_is_shorter_than_an_epoch() -> None:
    training = begun("dividemix", {}, common=PLAIN | MIX | {"batch_size": 2}, steps=4)
    before = training.stack.algorithm.clean.clone()
    training.step()
    assert torch.equal(training.stack.algorithm.clean, before)
    training.step()
    assert not torch.equal(training.stack.algorithm.clean, before)


@pytest.mark.parametrize("name", ["dividemix", "elr_plus"])
def test_an_algorithm_of_two_networks_predicts_with_both(name: str) -> None:
    training, inputs = begun(name, {}), rows().inputs
    network = training.stack.network
    both = [some(*(x[None] for x in inputs)) for some in (network.first, network.second)]
    assert close(training.stack.answer(*inputs), (both[0] + both[1]) / 2)


def test_anchors_stand_at_the_weighted_percentile_of_each_class() -> None:
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(2, 50, CLASSES, generator=generator, dtype=torch.float64).softmax(-1)
    weight = torch.randint(1, 4, (1, 50), generator=generator).double()
    result = estimate_transition(p, weight, [97.0, 60.0])
    for position, percentile in enumerate((97, 60)):
        for i in range(CLASSES):
            column = p[position, :, i].numpy()
            at = np.percentile(column, percentile, weights=weight[0].numpy(), method="inverted_cdf")
            assert torch.equal(result[position, i], p[position, int((column == at).argmax())])
    assert torch.equal(estimate_transition(p, weight, [100.0, 100.0])[0, 1], p[0, p[0, :, 1].argmax()])


@pytest.mark.parametrize("name", ["forward_correction", "backward_correction"])
def test_a_correction_learns_plainly_estimates_the_matrix_then_begins_anew(name: str) -> None:
    training, plain = (
        begun(item, own, common=FULL, steps=5) for item, own in ((name, {"percentile": 90.0}), ("erm", {}))
    )
    for _ in range(2):
        training.step(), plain.step()
    data, network, algorithm = rows(), training.stack.network, training.stack.algorithm
    p = plain.stack.answer(*data.inputs).softmax(-1)
    assert close(algorithm.transition, estimate_transition(p, data.weight, [90.0]))
    assert not torch.equal(network.head.weight, plain.stack.network.head.weight)
    expected = algorithm.corrected(network(*(x[None] for x in data.inputs)), data.target).mean()
    training.step()
    assert float(training.losses) == pytest.approx(expected.item(), abs=1e-8)


Table = NDArray[np.float64]


def by_hand(p: Table, given: list[int]) -> tuple[Table, Table, list[float]]:
    """The confident joint, the joint distribution, and what each row weighs (0: pruned)."""
    count, classes = p.shape
    of = [[row for row in range(count) if given[row] == j] for j in range(classes)]
    threshold = [np.mean([p[row, j] for row in of[j]]) if of[j] else np.inf for j in range(classes)]
    joint = np.zeros((classes, classes))
    for row in range(count):
        sure = [j for j in range(classes) if p[row, j] >= threshold[j]]
        if sure:
            joint[given[row], max(sure, key=lambda j: p[row, j])] += 1
    q = np.zeros_like(joint)
    for i in range(classes):
        if joint[i].sum():
            q[i] = joint[i] / joint[i].sum() * len(of[i]) / count
        else:
            q[i, i] = len(of[i]) / count
    gone: set[int] = set()
    for i in range(classes):
        for j in range(classes):
            if i != j:
                by_margin = sorted(of[i], key=lambda row: p[row, i] - p[row, j])
                gone |= set(by_margin[: round(count * q[i, j])])
    weight = [0.0 if row in gone else q[:, i].sum() / q[i, i] if q[i, i] else 1.0 for row, i in enumerate(given)]
    return joint, q, weight


def test_a_class_without_labels_and_a_class_without_confident_rows_do_no_harm() -> None:
    p = torch.tensor([[[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.9, 0.1, 0.0], [0.9, 0.1, 0.0]]], dtype=torch.float64)
    given = torch.tensor([[0, 0, 1, 1]])
    joint, q, weight = by_hand(p[0].numpy(), given[0].tolist())
    assert cl.compute_confident_joint(p, given)[0].tolist() == joint.tolist()
    np.testing.assert_allclose(cl.estimate_joint(p, given)[0].numpy(), q)
    assert joint[2].sum() == q[2].sum() == 0
    assert cl.compute_row_weights(p, given)[0].tolist() == pytest.approx(weight)
    assert weight[2:] == [0, 0]  # no row labelled 1 is held to be right: both go
    nobody = torch.tensor([[[0.5, 0.5], [0.5, 0.5]]], dtype=torch.float64)
    assert cl.compute_row_weights(nobody, torch.tensor([[0, 0]])).tolist() == [[1.0, 1.0]]


def test_labels_are_spread_evenly_over_the_folds_and_replicas_have_their_own() -> None:
    given = torch.arange(40).remainder(4).expand(2, -1)
    fold = cl.assign_folds(given, 5, make_keys(["a", "b"]))
    for position in range(2):
        for label in range(4):
            assert torch.bincount(fold[position][given[position] == label], minlength=5).tolist() == [2] * 5
    assert not torch.equal(fold[0], fold[1])
    assert torch.equal(cl.assign_folds(given[:1], 5, make_keys(["b"]))[0], fold[1])


def test_every_probability_is_of_a_network_that_has_not_seen_the_row_and_the_last_sees_what_stays() -> None:
    training = begun("confident_learning", {}, common=FULL | {"folds": 3}, steps=14)
    (_, x), label = rows().inputs, rows().target[0]
    assert training.stages == (2, 2, 2, 8)
    algorithm = training.stack.algorithm
    expected = torch.zeros(len(x), CLASSES, dtype=torch.float64)
    for fold in range(3):
        seen, w = algorithm.fold[0] != fold, weights(training, 0)
        for _ in range(2):
            training.step()
            slopes = torch.autograd.grad(F.cross_entropy(head(w, encode(w, x[seen])), label[seen]), list(w.values()))
            w = {name: w[name] - 0.1 * slope for name, slope in zip(w, slopes, strict=True)}
        expected[~seen] = head(w, encode(w, x[~seen])).softmax(-1).detach()
    assert close(algorithm.probabilities[0], expected)
    weight = torch.tensor(by_hand(expected.numpy(), label.tolist())[2], dtype=torch.float64)
    assert close(algorithm.weight[0], weight)
    w = weights(training, 0)
    loss = (F.cross_entropy(head(w, encode(w, x)), label, reduction="none") * weight).sum() / weight.sum()
    training.step()
    assert float(training.losses) == pytest.approx(loss.item(), abs=1e-10)


P, NEURONS = 13, 6


def pairs() -> Data:
    """All of a + b modulo P."""
    a, b = torch.arange(P * P) // P, torch.arange(P * P) % P
    ones = torch.ones(P * P)
    numbers = torch.zeros(P * P, 0, dtype=torch.float64)
    return Data((torch.stack([a, b], 1), numbers), ((a + b) % P)[None], ones.long(), ones[None].double())


def planted(*thresholds: float) -> ReplicaStack:
    """The first three neurons of each replica are waves of all frequencies, the others are as they were drawn."""
    each = [{"threshold": threshold} for threshold in thresholds]
    common = {"width": NEURONS, "batch_size": 0}
    built = begun(
        "ipr_pruning", *each, network="quadratic_mlp", common=common, data=pairs(), sizes=Sizes(P, (P, P))
    ).stack
    value = torch.arange(P, dtype=torch.float64)
    for neuron in range(3):
        wave = torch.cos(2 * torch.pi * (neuron + 1) * value / P + 0.3 * neuron)
        with torch.no_grad():
            built.network.into.weight[:, :, neuron] = torch.cat([wave, 2 * wave])
            built.network.head.weight[:, :, neuron] = wave
    return built


def test_periodic_neurons_survive_and_random_ones_go() -> None:
    built = planted(0.7, 0.0)
    before = built.network.head.weight.detach().clone()
    built.algorithm.finish(built.network, pairs(), built.answer)
    after = built.network.head.weight.detach().clone()
    assert torch.equal(after[0, :, :3], before[0, :, :3])
    assert (after[0, :, 3:] == 0).all()
    assert torch.equal(after[1], before[1])
    built.algorithm.finish(built.network, pairs(), built.answer)
    assert torch.equal(after, built.network.head.weight), "to prune twice is to prune once"


def test_the_pruned_network_answers_as_one_that_never_had_the_neurons() -> None:
    built, data = planted(0.7), pairs()
    built.algorithm.finish(built.network, data, built.answer)
    a, b = data.inputs[0].T
    into, head = built.network.into.weight[0], built.network.head.weight[0]
    hidden = (into[a] + into[P + b])[:, :3].square()
    torch.testing.assert_close(built.answer(*data.inputs)[0], hidden @ head[:, :3].T, rtol=0, atol=1e-12)
