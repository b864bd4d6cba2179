"""Algorithms that read inputs of shifted rows, in training or when they are asked: what they learn, and what a reset forgets."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms._norms import interpolate_moments
from farshift.baselines.algorithms.bbse import estimate_class_ratios
from farshift.baselines.algorithms.divdis import kl_divergence
from farshift.baselines.algorithms.importance_weighting import fit_log_odds
from farshift.baselines.algorithms.itta import Elementwise, mix_styles
from farshift.baselines.replicas.rng import derive_stream, make_keys
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.core.errors import ModelError
from torch import Tensor

from .small_stacks import (
    ADAM,
    IMAGES,
    PLAIN,
    RESNET,
    asked,
    batch_of,
    begun,
    clock_of,
    close,
    encode,
    finished,
    head,
    moved_along,
    weights,
    wide_rows,
)

ON_FEATURES: list[tuple[str, dict[str, Any]]] = [
    ("t3a", {"supports": 2}),
    ("t3a", {"supports": 0}),
    ("ada_npc", {"k": 5, "beta": 0.5}),
    ("itta", {"adaptive_lr": 0.05, "test_weight": 1.0}),
]
ON_PICTURES: list[tuple[str, dict[str, Any]]] = [
    ("tent", {"adaptive_lr": 0.05}),
    ("eata", {"adaptive_lr": 0.05, "sure": 1.1, "redundant": 1.1}),
    ("sar", {"adaptive_lr": 0.05, "sure": 1.1, "collapsed": 0.0}),
    ("cotta", {"adaptive_lr": 0.05, "confident": 1.1, "views": 2}),
]
EVERY = [*ON_FEATURES, *ON_PICTURES]
ids = [f"{name} {settings.get('supports', '')}".strip() for name, settings in EVERY]


def training_of(algorithm: str, *each: dict[str, Any], steps: int = 10, **settings: Any) -> Training:
    """Of one replica, or of one for each of `each`; on pictures a residual network."""
    images = algorithm in dict(ON_PICTURES)
    data = wide_rows(sizes=IMAGES if images else None)
    more: dict[str, Any] = {"network": "resnet", "sizes": IMAGES} if images else {}
    common = (RESNET if images else ADAM) | settings
    return begun(algorithm, *(each or ({},)), common=common, data=data, steps=steps, **more)


def made(algorithm: str, *each: dict[str, Any], **settings: Any) -> tuple[ReplicaStack, Data]:
    """A trained replica stack and its data."""
    training = training_of(algorithm, *each, **settings)
    return finished(training), training.initial_data


@pytest.mark.parametrize(("algorithm", "settings"), EVERY, ids=ids)
def test_what_is_asked_changes_later_answers_until_a_reset(algorithm: str, settings: dict[str, Any]) -> None:
    stack, data = made(algorithm, {}, {"lr": 0.02}, **settings)
    first = asked(stack, data)
    again = asked(stack, data)
    assert not torch.equal(first, again)
    stack.algorithm.reset(stack.network)
    assert torch.equal(first, asked(stack, data))


@pytest.mark.parametrize(("algorithm", "settings"), EVERY, ids=ids)
def test_validation_in_training_teaches_nothing(algorithm: str, settings: dict[str, Any]) -> None:
    looks, never = (training_of(algorithm, **settings, **more) for more in ({"check_every": 1, "patience": 100}, {}))
    for training in (looks, never):
        for _ in range(6):
            training.step()
    assert looks.validation is not None
    assert looks.validation.best is not None
    assert never.validation is None
    states = [training.stack.state_dict() for training in (looks, never)]
    assert states[0].keys() == states[1].keys()
    others = [
        name for name in states[0] if name.startswith(("network.", "algorithm.")) and "hyperparameters." not in name
    ]
    assert all(torch.equal(states[0][name], states[1][name]) for name in others)
    stack, inputs = looks.stack, looks.data.inputs
    assert torch.equal(stack.answer(*inputs), stack.answer(*inputs))


def test_templates_without_a_limit_keep_every_support() -> None:
    answers = []
    for most in (0, 1000, 1):
        stack, data = made("t3a", supports=most)
        answers.append(asked(stack, data))
    assert close(answers[0], answers[1])
    assert not close(answers[0], answers[2], 1e-3)


def test_no_row_joins_above_certainty() -> None:
    stack, data = made("ada_npc", beta=1.1, k=5)
    assert torch.equal(asked(stack, data), asked(stack, data))
    assert stack.algorithm.memory.shape[1] == len(data)


ROWS = 8


def adapting(algorithm: str, *each: dict[str, Any], **settings: Any) -> tuple[ReplicaStack, Data]:
    """A trained residual network of two replicas, and its data."""
    data = wide_rows(sizes=IMAGES)
    training = begun(algorithm, *each, common=RESNET | settings, data=data, network="resnet", sizes=IMAGES)
    return finished(training), data


def test_a_single_value_keeps_the_variance_of_training_and_moments_are_put_back() -> None:
    stack, _ = adapting("batch_norm_adaptation", {})
    network = stack.network
    norm = network.body[0].norm
    before = norm.running_mean, norm.running_var
    with interpolate_moments(network, torch.ones(1, dtype=torch.float64)), torch.no_grad():
        assert close(norm(torch.full((1, 1, 2, 1, 1), 3.0, dtype=torch.float64))[0, 0, :, 0, 0], norm.bias[0])
    assert norm.running_mean is before[0]
    assert norm.running_var is before[1]


def test_shot_keeps_its_head_and_adapts_to_rows_without_labels() -> None:
    data = wide_rows()
    training = begun("shot", {}, common=ADAM | {"source_percent": 50}, data=data, steps=4)
    for _ in range(2):
        training.step()
    before = {name: p.detach().clone() for name, p in training.stack.network.named_parameters()}
    training.step()
    moved = {name for name, p in training.stack.network.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {"hidden.0.weight", "hidden.0.bias"}


def test_memo_answers_each_row_by_itself() -> None:
    stack, data = adapting("memo", {"adaptive_lr": 0.3}, {"adaptive_lr": 0.1}, views=3)
    result = asked(stack, data, 4)
    assert torch.equal(result.flip(1), asked_in(stack, data, torch.arange(23, -1, -1)))


def asked_in(stack: ReplicaStack, data: Data, order: Tensor) -> Tensor:
    """Answers to rows in another order, in batches of another size."""
    return stack.answer(*(x[order] for x in data.inputs), rows=6)


def test_what_only_looks_at_the_batch_remembers_nothing() -> None:
    stack, data = adapting("batch_norm_adaptation", {"prior": 4.0})
    assert torch.equal(asked(stack, data, ROWS), asked(stack, data, ROWS))
    for affinity in ("rbf", "knn", "linear"):
        stack = finished(begun("lame", {}, common=ADAM | {"affinity": affinity, "neighbours": 2}, data=wide_rows()))
        assert torch.equal(asked(stack, data := wide_rows(), ROWS), asked(stack, data, ROWS))


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
    data, stack, algorithm = built.data, built.stack, built.stack.algorithm
    assert built.stages == (4, 4)
    assert data.unlabelled is not None
    locked = data.held_out["id_val"]
    predicted, shifted = (stack.answer(*inputs).argmax(-1) for inputs in (locked.inputs, data.unlabelled))
    algorithm.next_stage(1, stack.network, data, stack.answer)
    expected = estimate_class_ratios(predicted, locked.target[0], shifted, 3).clamp(min=0)
    assert close(algorithm.class_weight, expected)  # type: ignore[arg-type]
    batch, before = batch_of(built), [weights(built, replica) for replica in range(2)]
    losses = []
    for k, w in enumerate(before):
        errors = F.cross_entropy(head(w, encode(w, batch.inputs[1][k])), batch.target[k], reduction="none")
        losses.append((expected[k][batch.target[k]] * errors).mean())
    built.step()
    assert moved_along(built, before, [losses[0], 2 * losses[1]])


def test_two_classifiers_answer_with_the_sum_of_their_logits() -> None:
    built, x = begun("mcd", {}, {"lr": 0.2}, common=PLAIN, data=wide_rows()), wide_rows().inputs
    answers = finished(built).answer(*x)
    w = {name: value[1].detach() for name, value in built.stack.network.named_parameters()}
    assert close(answers[1], head(w, encode(w, x[1])) + head(w, encode(w, x[1]), "second"))


def test_a_divergence_from_a_class_that_never_occurs_is_large_and_finite() -> None:
    result = kl_divergence(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    assert 10 < float(result) < 100


def heads_of(w: dict[str, Tensor], x: Tensor, count: int) -> Tensor:
    return head(w, encode(w, x)).unflatten(-1, (count, -1))


def test_the_prior_weighs_how_far_a_heads_classes_are_from_those_of_training_at_each_replicas_own_weights() -> None:
    data = wide_rows()
    data = data.changed(torch.tensor([[1.0, 3.0]], dtype=torch.float64).repeat(1, 12), data.target)
    each = [{"prior": prior} for prior in (0.0, 0.5, 4.0)]
    training = begun("divdis", *each, common=PLAIN | {"heads": 3}, data=data, names=("same",) * 3)
    batch, w = batch_of(training), weights(training, 0)
    share = torch.bincount(data.target[0], data.weight[0], minlength=3) / data.weight.sum()
    assert batch.unlabelled is not None
    p = heads_of(w, batch.unlabelled[1][0], 3).softmax(-1).mean(0)
    apart = (p * (p / share).log()).sum() / 3
    training.step()
    assert close(training.losses - training.losses[0], apart * torch.tensor([0.0, 0.5, 4.0]).double())


def test_heads_begin_apart_and_the_chosen_one_predicts() -> None:
    data = wide_rows()
    for chosen in (0, 1):
        training = begun("divdis", {}, common=ADAM | {"head": chosen}, data=data, steps=3)
        w = weights(training, 0)
        assert not close(w["head.weight"][:3], w["head.weight"][3:], 1e-3)
        stack = finished(training)
        z = heads_of(weights(training, 0), data.inputs[1], 2)
        assert close(stack.answer(*data.inputs)[0], z[:, chosen])


def member(w: dict[str, Tensor], place: int) -> dict[str, Tensor]:
    return {name.removeprefix(f"{place}."): value for name, value in w.items() if name.startswith(f"{place}.")}


def test_the_ensemble_predicts_the_mean_of_its_trained_members_probabilities() -> None:
    data = wide_rows()
    training = begun("d_bat", {}, data=data, common=ADAM | {"candidates": 4}, steps=8)
    outcome = training.run()
    for (_, stack), trained in zip([*outcome.candidates, ("last", outcome.ended[0])], (1, 1, 2, 2), strict=True):
        w = {name: value[0] for name, value in stack.network.named_parameters()}
        each = [head(member(w, m), encode(member(w, m), data.inputs[1])).softmax(-1) for m in range(trained)]
        assert close(stack.answer(*data.inputs)[0].softmax(-1), torch.stack(each).mean(0))


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
                assert close(after[name], value - lr * slope), (step, name)
    stack, data = finished(built), wide_rows()
    for replica in range(2):
        w = {name: value[replica].detach() for name, value in stack.network.named_parameters()}
        each = [{name[2:]: value for name, value in w.items() if name.startswith(f"{m}.")} for m in range(3)]
        mean = sum(head(item, encode(item, data.inputs[1])).softmax(-1) for item in each) / 3
        assert close(stack.answer(*data.inputs)[replica].softmax(-1), mean)


KEYS = make_keys(["one", "two"])


@pytest.mark.parametrize("shape", [(2, 6, 9), (2, 6, 3, 4, 5)], ids=["vectors", "images"])
def test_another_style_lies_between_a_rows_own_and_that_of_another_row(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = mix_styles(x, KEYS, [1.0, 1.0])
    channels = (x, result) if x.ndim == 5 else (x[:, :, None], result[:, :, None])
    before, after = (value.flatten(3) for value in channels)
    means, deviations = before.mean(-1), (before.var(-1, correction=0) + 1e-6).sqrt()
    content = (before - means[..., None]) / deviations[..., None]
    scale = ((after - after.mean(-1, keepdim=True)) * content).sum(-1) / content.square().sum(-1)
    for replica in range(2):
        for row in range(6):
            fits = []
            for other in range(6):
                span = means[replica, other] - means[replica, row]
                share = ((after[replica, row].mean(-1) - means[replica, row]) * span).sum() / span.square().sum()
                share = torch.nan_to_num(share)
                expected = [
                    item[replica, row] + share * (item[replica, other] - item[replica, row])
                    for item in (means, deviations)
                ]
                fits.append(
                    close(after[replica, row].mean(-1), expected[0]) and close(scale[replica, row], expected[1])
                )
                fits[-1] = fits[-1] and 0 <= float(share) <= 1
            assert any(fits)
    assert not close(result, x, 1e-3)


def test_elementwise_maps_are_the_identity_above_nought_at_first() -> None:
    x = torch.tensor([[[-1.0, 0.0, 2.5]]], dtype=torch.float64)
    assert Elementwise(1, 4, 3).double()(x).tolist() == [[[0.0, 0.0, 2.5]]]


def elementwise(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """Layers (depth, width) of affine maps with ReLU between them."""
    for position, (w, b) in enumerate(zip(weight, bias, strict=True)):
        x = (torch.relu(x) if position else x) * w + b
    return x


def terms(
    w: dict[str, Tensor], a: tuple[Tensor, Tensor], x: Tensor, label: Tensor, key: Tensor
) -> tuple[Tensor, Tensor]:
    """The consistency loss of a batch and its risk in both styles."""
    z, other = encode(w, x), encode(w, mix_styles(x[None], key, [0.1])[0])
    risk = F.cross_entropy(head(w, z), label) + F.cross_entropy(head(w, other), label)
    return elementwise(*a, other - z).square().mean(), risk


def test_the_network_takes_its_step_and_then_the_consistency_loss_its_own() -> None:
    each = [{"alignment": 0.5, "adaptive_lr": 0.3}, {"alignment": 2.0, "adaptive_lr": 0.1}]
    training = begun("itta", *each, common=PLAIN | {"consistency_depth": 3, "batch_size": 8}, data=wide_rows())
    loss = training.stack.algorithm.consistency
    with torch.no_grad():
        loss.bias += torch.linspace(0, 0.2, loss.bias.numel(), dtype=torch.float64).view_as(loss.bias)
    batch, clock = batch_of(training), clock_of(training)
    before = [weights(training, replica) for replica in range(2)]
    own = [
        (loss.weight[r].detach().clone().requires_grad_(), loss.bias[r].detach().clone().requires_grad_())
        for r in range(2)
    ]
    cases = [(batch.inputs[1][replica], batch.target[replica]) for replica in range(2)]
    first, again = clock.draw("style"), clock.draw("style again")
    losses = [sum(terms(before[r], own[r], *cases[r], first[r : r + 1])) for r in range(2)]
    training.step()
    assert close(training.losses, torch.stack(losses))  # type: ignore[arg-type]
    assert moved_along(training, before, losses)  # type: ignore[arg-type]
    for replica, settings in enumerate(each):
        w = weights(training, replica)
        consistency, risk = terms(w, own[replica], *cases[replica], again[replica : replica + 1])
        features = [value for name, value in w.items() if not name.startswith("head")]
        slopes = []
        for value in (consistency, risk):
            flat = torch.cat([g.flatten() for g in torch.autograd.grad(value, features, create_graph=True)])
            slopes.append((flat - flat.mean().item()) / flat.std().item())
        distance = settings["alignment"] * (slopes[0] - slopes[1].detach()).square().mean()
        gradients = torch.autograd.grad(distance, own[replica])
        assert any(float(g.abs().max()) > 1e-6 for g in gradients)
        for parameter, start, gradient in zip((loss.weight, loss.bias), own[replica], gradients, strict=True):
            assert close(parameter[replica], start - settings["adaptive_lr"] * gradient)


def test_each_batch_moves_the_map_by_one_step_before_it_is_predicted() -> None:
    each: list[dict[str, Any]] = [{"adaptive_lr": 0.05, "test_weight": 1.0}, {"adaptive_lr": 0.01, "test_weight": 1e-6}]
    training = begun("itta", *each, common=ADAM | {"map_depth": 2}, data=wide_rows())
    stack = finished(training)
    data, loss = training.initial_data, stack.algorithm.consistency
    with torch.no_grad():
        loss.bias += 0.1  # above 0, where the loss has a slope
    result = asked(stack, data, 8)
    for replica, settings in enumerate(each):
        w = weights(training, replica)
        mapping = [torch.ones(2, 6, dtype=torch.float64), torch.zeros(2, 6, dtype=torch.float64)]
        mapping = [value.requires_grad_() for value in mapping]
        optimiser = torch.optim.Adam(mapping, lr=settings["adaptive_lr"])
        fixed = loss.weight[replica].detach(), loss.bias[replica].detach()
        for turn, x in enumerate(data.inputs[1].split(8)):
            key = derive_stream(stack.keys[replica : replica + 1], "test style", turn)
            z, other = encode(w, x).detach(), encode(w, mix_styles(x[None], key, [0.1])[0]).detach()
            moved = elementwise(*fixed, elementwise(*mapping, other) - elementwise(*mapping, z))
            optimiser.zero_grad()
            (settings["test_weight"] * moved.square().mean()).backward()
            optimiser.step()
            assert close(result[replica, 8 * turn : 8 * turn + 8], head(w, elementwise(*mapping, z)))
        assert not torch.equal(mapping[0], torch.ones_like(mapping[0]))


def test_a_map_that_has_not_moved_changes_nothing_on_negative_features_either() -> None:
    settings = RESNET | {"adaptive_lr": 0.0}
    training = begun("itta", {}, network="resnet", common=settings, data=wide_rows(sizes=IMAGES), sizes=IMAGES)
    stack = finished(training)
    inputs = [x[None] for x in training.initial_data.inputs]
    with torch.no_grad():
        features = stack.network.encode(stack.network.embed(*inputs))
        expected = stack.network(*inputs)
    assert features.min() < 0 < features.max()
    assert close(stack.answer(*training.initial_data.inputs), expected)
