"""Adaptation to test batches by normalisation, by sure rows and by neighbours: each is what plain loops come to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.algorithms._norms import interpolate_moments
from farshift.baselines.algorithms.shot import assign_pseudo_labels
from farshift.baselines.augmentations import domainbed
from farshift.baselines.replicas.rng import derive_stream, draw_uniform
from farshift.baselines.replicas.stacked import attach_rng
from farshift.baselines.training.augmentation import augment_flat_rows
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.core.errors import ModelError
from torch import Tensor

from .shifted_stacks import IMAGES, RESNET, asked, finished, near, wide_rows
from .small_stacks import ADAM, begun

ROWS = 8


def adapting(algorithm: str, *each: dict[str, Any], **settings: Any) -> tuple[ReplicaStack, Data]:
    """A trained residual network of two replicas, and its data."""
    data = wide_rows(sizes=IMAGES)
    training = begun(algorithm, *each, common=RESNET | settings, data=data, network="resnet", sizes=IMAGES)
    return finished(training), data


def alone(stack: ReplicaStack, replica: int) -> Any:
    """A copy of one replica's network, normalised by each batch."""
    network = stack.only([replica]).network
    attach_rng(network, None)  # type: ignore[arg-type]
    return network.train()


def batches(data: Data) -> list[tuple[Tensor, ...]]:
    return [tuple(x[None, start : start + ROWS] for x in data.inputs) for start in range(0, len(data), ROWS)]


def adapted(algorithm: str, each: list[dict[str, Any]]) -> tuple[ReplicaStack, Data, list[Any], Tensor]:
    """A stack, its data, a plain copy of each replica's network, and what the stack then answers to the batches."""
    stack, data = adapting(algorithm, *each)
    return stack, data, [alone(stack, replica) for replica in range(len(each))], asked(stack, data, ROWS)


def answered(network: Any, batch: tuple[Tensor, ...], found: Tensor, place: int) -> Tensor:
    """A plain network's logits of the batch in a place, which are those that were found (N, classes)."""
    logits: Tensor = network(*batch)[0]
    assert near(found[ROWS * place : ROWS * (place + 1)], logits)
    return logits


def uncertainty(logits: Tensor) -> Tensor:
    p = logits.softmax(-1)
    return -(p * p.log()).sum(-1)


def test_test_batches_are_normalised_by_moments_between_training_s_and_their_own() -> None:
    each = [{"prior": 0.0}, {"prior": 12.0}]
    stack, data = adapting("batch_norm_adaptation", *each)
    result = asked(stack, data, ROWS)
    for replica, own in enumerate(each):
        network = stack.only([replica]).network.eval()
        norms = [module for module in network.modules() if hasattr(module, "running_mean")]
        share = own["prior"] / (own["prior"] + ROWS)

        def normalised(norm: Any, given: tuple[Tensor], _: Tensor, share: float = share) -> Tensor:
            x = given[0][0].numpy()
            seen = x.transpose(1, 0, 2, 3).reshape(x.shape[1], -1)
            mean = share * norm.running_mean[0].numpy() + (1 - share) * seen.mean(1)
            var = share * norm.running_var[0].numpy() + (1 - share) * seen.var(1, ddof=1)
            scale = norm.weight[0].detach().numpy() / np.sqrt(var + norm.eps)
            shift = norm.bias[0].detach().numpy() - mean * scale
            return torch.tensor(x * scale[:, None, None] + shift[:, None, None])[None]

        for norm in norms:
            norm.register_forward_hook(normalised)
        for position, batch in enumerate(batches(data)):
            with torch.no_grad():
                assert near(result[replica, ROWS * position : ROWS * (position + 1)], network(*batch)[0])
    assert torch.equal(result, asked(stack, data, ROWS)), "nothing is remembered"


def test_a_single_value_keeps_the_variance_of_training_and_moments_are_put_back() -> None:
    stack, _ = adapting("batch_norm_adaptation", {})
    network = stack.network
    norm = network.body[0].norm
    before = norm.running_mean, norm.running_var
    with interpolate_moments(network, torch.ones(1, dtype=torch.float64)), torch.no_grad():
        assert near(norm(torch.full((1, 1, 2, 1, 1), 3.0, dtype=torch.float64))[0, 0, :, 0, 0], norm.bias[0])
    assert norm.running_mean is before[0]
    assert norm.running_var is before[1]


def test_eata_learns_from_sure_and_new_rows_and_stays_near_to_where_it_began() -> None:
    each = [
        {"adaptive_lr": 0.05, "sure": 0.98, "redundant": 0.985, "anchoring": 5.0},
        {"adaptive_lr": 0.3, "sure": 0.9999, "redundant": 1.1, "anchoring": 0.0},
        {"adaptive_lr": 0.3, "sure": 0.0, "redundant": 1.1, "anchoring": 5.0},
    ]
    stack, data, networks, result = adapted("eata", each)
    learned = []
    for replica, (own, network) in enumerate(zip(each, networks, strict=True)):
        affine = [p for name, p in network.named_parameters() if ".norm." in name]
        start = [p.detach().clone() for p in affine]
        logits = network(*(x[None] for x in data.inputs))[0]
        certain = torch.nn.functional.cross_entropy(logits, logits.argmax(1))
        fisher = [g**2 for g in torch.autograd.grad(certain, affine)]
        oracle = torch.optim.SGD(affine, own["adaptive_lr"], momentum=0.9)
        before: Tensor | None = None
        most = own["sure"] * math.log(3)
        for position, batch in enumerate(batches(data)):
            logits = answered(network, batch, result[replica], position)
            chosen = []
            for row, h in enumerate(uncertainty(logits)):
                p = logits[row].softmax(0).detach()
                new = before is None or abs(float(p @ before / p.norm() / before.norm())) < own["redundant"]
                if h < most and new:
                    chosen.append((h, p))
            learned.append(len(chosen))
            if not chosen:
                continue
            mean = torch.stack([p for _, p in chosen]).mean(0)
            before = mean if before is None else 0.9 * before + 0.1 * mean
            loss = sum(torch.exp(most - h.detach()) * h for h, _ in chosen) / len(chosen)
            loss = loss + own["anchoring"] * sum(
                (f * (p - s) ** 2).sum() for f, p, s in zip(fisher, affine, start, strict=True)
            )
            oracle.zero_grad()
            loss.backward()
            oracle.step()
        ours = [p[replica] for name, p in stack.network.named_parameters() if ".norm." in name]
        assert all(near(item, other[0]) for item, other in zip(ours, affine, strict=True))
    assert 0 < min(learned[:3]) < ROWS, "some rows are left out"
    assert learned[6:] == [0, 0, 0]


def test_sar_takes_sharpness_aware_steps_on_sure_rows_and_begins_anew_after_a_collapse() -> None:
    each = [
        {"adaptive_lr": 0.5, "sure": 0.98, "radius": 0.1, "collapsed": 0.0},
        {"adaptive_lr": 0.3, "sure": 1.1, "radius": 0.1, "collapsed": 5.0},
        {"adaptive_lr": 0.3, "sure": 0.0, "radius": 0.1, "collapsed": 5.0},
    ]
    stack, data, networks, result = adapted("sar", each)
    counts = []
    for replica, (own, network) in enumerate(zip(each, networks, strict=True)):
        affine = list(network.body[0].norm.parameters())
        start = [p.detach().clone() for p in affine]
        velocity, average = [torch.zeros_like(p) for p in affine], None
        most = own["sure"] * math.log(3)
        for position, batch in enumerate(batches(data)):
            logits = answered(network, batch, result[replica], position)
            h = uncertainty(logits)
            sure = [row for row in range(len(h)) if h[row] < most]
            counts.append(len(sure))
            if not sure:
                continue
            slope = torch.autograd.grad(h[sure].mean(), affine)
            norm = math.sqrt(sum(float((g**2).sum()) for g in slope))
            before = [p.detach().clone() for p in affine]
            with torch.no_grad():
                for p, g in zip(affine, slope, strict=True):
                    p += own["radius"] * g / norm
            h = uncertainty(network(*batch)[0])
            again = [row for row in sure if h[row] < most]
            slope = torch.autograd.grad(h[again].mean(), affine)
            value = h[again].mean().item()
            average = value if average is None else 0.9 * average + 0.1 * value
            with torch.no_grad():
                for p, old, v, g, first in zip(affine, before, velocity, slope, start, strict=True):
                    v.mul_(0.9).add_(g)
                    p.copy_(old - own["adaptive_lr"] * v)
                    if average < own["collapsed"]:
                        p.copy_(first)
                        v.zero_()
        ours = stack.network.body[0].norm
        assert near(ours.weight[replica], affine[0][0])
        assert near(ours.bias[replica], affine[1][0])
        assert torch.equal(affine[0], start[0]) == (replica > 0)
    assert 0 < min(counts[:3]) < ROWS, "some rows are left out"


def test_lame_smooths_the_probabilities_of_a_batch_over_rows_alike() -> None:
    for settings in (
        {"affinity": "rbf", "neighbours": 3},
        {"affinity": "knn", "neighbours": 2},
        {"affinity": "linear"},
    ):
        data = wide_rows()
        stack = finished(begun("lame", {}, {"lr": 0.05}, common=ADAM | settings, data=data))
        result = asked(stack, data, ROWS).softmax(-1).numpy()
        features = stack.features(*data.inputs).numpy()
        for replica in range(2):
            w, b = (p[replica].detach().numpy() for p in stack.network.head.parameters())
            for start in range(0, len(data), ROWS):
                z = features[replica, start : start + ROWS]
                e = np.exp(z @ w.T + b)
                q = e / e.sum(1, keepdims=True) + 1e-10
                f = z / np.linalg.norm(z, axis=1, keepdims=True)
                assert np.allclose(result[replica, start : start + ROWS], plainly(q, alike(f, **settings)), atol=1e-7)
        assert np.array_equal(result, asked(stack, data, ROWS).softmax(-1).numpy()), "nothing is remembered"


def alike(f: Any, affinity: str, neighbours: int = 5) -> Any:
    """w of a batch's normalised features, entry by entry."""
    rows = len(f)
    apart = np.array([[np.sqrt(((f[i] - f[j]) ** 2).sum()) for j in range(rows)] for i in range(rows)])
    if affinity == "linear":
        return np.array([[f[i] @ f[j] for j in range(rows)] for i in range(rows)])
    if affinity == "knn":
        result = np.zeros((rows, rows))
        for i in range(rows):
            result[i, sorted((j for j in range(rows) if j != i), key=lambda j: apart[i, j])[:neighbours]] = 1
        return result
    width = np.mean([sorted(apart[i])[neighbours - 1] for i in range(rows)])
    return np.exp(-(apart**2) / (2 * width**2))


def plainly(q: Any, w: Any) -> Any:
    """The fixed point, by many rounds."""
    z = q / q.sum(1, keepdims=True)
    for _ in range(200):
        z = q * np.exp(w @ z)
        z /= z.sum(1, keepdims=True)
    return z


def test_shot_s_pseudo_labels_are_of_the_nearest_centroid_after_two_rounds() -> None:
    drawn = np.random.default_rng(3)
    features, p = drawn.normal(size=(2, 20, 4)), drawn.dirichlet([0.4] * 5, size=(2, 20))
    result = assign_pseudo_labels(torch.tensor(features), torch.tensor(p))
    for replica in range(2):
        z = np.array([[*row, 1.0] for row in features[replica]])
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        share, chosen = p[replica], p[replica].argmax(1)
        for _ in range(2):
            near_to = {}
            for c in set(chosen.tolist()):
                near_to[c] = sum(share[row, c] * z[row] for row in range(20)) / share[:, c].sum()
            chosen = np.array([max(near_to, key=lambda c: near_to[c] @ row / np.linalg.norm(near_to[c])) for row in z])
            share = np.eye(5)[chosen]
        assert result[replica].tolist() == chosen.tolist()


def test_shot_keeps_its_head_and_adapts_to_rows_without_labels() -> None:
    data = wide_rows()
    settings = ADAM | {"optimiser": "sgd", "momentum": 0.0, "adaptive_lr": 0.1, "pseudo": 0.4, "relabels": 1}
    training = begun("shot", {"smoothing": 0.2}, common=settings | {"source_percent": 50}, data=data, steps=4)
    for _ in range(2):
        training.step()
    w = {name: p[0].detach().clone() for name, p in training.stack.network.named_parameters()}
    head = w["head.weight"], w["head.bias"]
    own = [w["hidden.0.weight"].requires_grad_(), w["hidden.0.bias"].requires_grad_()]
    assert data.unlabelled is not None
    training.step()
    rows = training.stack.algorithm._order[1].draw(0, 4)[0]
    logits = torch.relu(data.unlabelled[1] @ own[0].T + own[1]) @ head[0].T + head[1]
    pseudo = training.stack.algorithm.pseudo[0]
    p = logits[rows].softmax(1)
    mean = p.mean(0)
    loss = -(p * (p + 1e-5).log()).sum(1).mean() + (mean * (mean + 1e-5).log()).sum()
    loss = loss - 0.4 * torch.stack([logits[row].log_softmax(0)[pseudo[row]] for row in rows]).mean()
    assert near(training.losses[0], loss)
    after = dict(training.stack.network.named_parameters())
    for parameter, name, slope in zip(own, ("weight", "bias"), torch.autograd.grad(loss, own), strict=True):
        assert near(after[f"hidden.0.{name}"][0], parameter - 0.1 * slope)
        assert torch.equal(after[f"head.{name}"][0], w[f"head.{name}"])
    with pytest.raises(ModelError, match="shot trains on inputs of the shifted test rows"):
        begun("shot", {}, data=replace(data, unlabelled=None))


def test_memo_answers_each_row_by_itself_after_a_step_towards_one_sure_answer() -> None:
    stack, data = adapting("memo", {"adaptive_lr": 0.3}, {"adaptive_lr": 0.1}, views=3)
    result = asked(stack, data, 4)
    assert torch.equal(result.flip(1), asked_in(stack, data, torch.arange(23, -1, -1)))
    for replica, rate in enumerate((0.3, 0.1)):
        item = stack.only([replica])
        network = item.network.eval()
        for row in (0, 7):
            inputs = [x[None, row : row + 1] for x in data.inputs]
            start = [p.detach().clone() for p in network.parameters()]
            p = network(*item.algorithm.views(*inputs))[0].softmax(-1).mean(0)
            slopes = torch.autograd.grad(-(p * p.log()).sum(), list(network.parameters()))
            with torch.no_grad():
                for parameter, slope in zip(network.parameters(), slopes, strict=True):
                    parameter -= rate * slope
                assert near(result[replica, row], network(*inputs)[0, 0])
                for parameter, value in zip(network.parameters(), start, strict=True):
                    parameter.copy_(value)


def asked_in(stack: ReplicaStack, data: Data, order: Tensor) -> Tensor:
    """Answers to rows in another order, in batches of another size."""
    return stack.answer(*(x[order] for x in data.inputs), rows=6)


def test_cotta_s_student_follows_a_slow_teacher_and_some_weights_return() -> None:
    settings = {"views": 2, "slowness": 0.6, "confident": 1.1}
    stack, data = adapting("cotta", {"adaptive_lr": 0.02, "restore": 0.3}, {"adaptive_lr": 0.05}, **settings)
    students, teachers = ([alone(stack, replica) for replica in range(2)] for _ in range(2))
    keys = stack.keys
    result = asked(stack, data, ROWS)
    for replica, (rate, restore) in enumerate(((0.02, 0.3), (0.05, 0.01))):
        student, teacher = students[replica], teachers[replica]
        start = [p.detach().clone() for p in student.parameters()]
        oracle = torch.optim.Adam(student.parameters(), rate)
        given = stack.only([replica])
        for turn, (nothing, numbers) in enumerate(batches(data)):
            rows = torch.arange(ROWS)[None]
            output = torch.zeros(1, ROWS, 3, dtype=torch.float64)
            for view in range(2):
                common = given.keys, rows, turn, given.hyperparameters, IMAGES
                output += teacher(nothing, augment_flat_rows(domainbed, f"view {view}", numbers, *common)).detach() / 2
            assert near(result[replica, ROWS * turn : ROWS * (turn + 1)], output[0])
            oracle.zero_grad()
            (-(output.softmax(-1) * student(nothing, numbers).log_softmax(-1)).sum() / ROWS).backward()
            oracle.step()
            with torch.no_grad():
                both = zip(student.parameters(), teacher.parameters(), start, strict=True)
                for position, (own, slow, first) in enumerate(both):
                    slow.copy_(0.6 * slow + 0.4 * own)
                    drawn = draw_uniform(
                        derive_stream(keys[replica : replica + 1], f"restore {position}", turn),
                        own.shape[1:],
                        torch.float64,
                    )
                    own[drawn < restore] = first[drawn < restore]


def test_what_an_algorithm_cannot_work_with_is_refused() -> None:
    for name in ("batch_norm_adaptation", "eata", "sar"):
        with pytest.raises(ModelError, match=f"{name} .*this network has none: use resnet"):
            begun(name, {}, data=wide_rows())
    for name in ("cotta", "memo"):
        with pytest.raises(ModelError, match="it is for images of one or three channels"):
            begun(name, {}, data=wide_rows())
    with pytest.raises(ModelError, match="prior = -1 of batch_norm_adaptation"):
        begun("batch_norm_adaptation", {"prior": -1.0}, data=wide_rows())
    with pytest.raises(ModelError, match="affinity = 'cosine' of lame: use rbf, knn, linear"):
        begun("lame", {"affinity": "cosine"}, data=wide_rows())
    with pytest.raises(ModelError, match="neighbours = 0 of lame"):
        begun("lame", {"neighbours": 0}, data=wide_rows())
