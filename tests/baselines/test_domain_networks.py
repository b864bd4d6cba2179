"""Algorithms for several environments that add parts, look a step ahead or read rows beside others: by plain formulas."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import lisa, selfreg
from farshift.baselines.algorithms.eiil import optimise_assignment
from farshift.baselines.algorithms.irm import compute_slopes
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.replicas.rng import draw_permutations, draw_uniform, make_keys
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .small_stacks import (
    ADAM,
    CLASSES,
    ENVIRONMENTS,
    PLAIN,
    SHARE,
    batch_of,
    begun,
    clock_of,
    close,
    encode,
    finished,
    head,
    moved_along,
    perceptron,
    rows,
    trained,
    weights,
)

MIXED = Sizes(CLASSES, categories=(4, 3), numbers=2)


def loss_of(training: Training) -> Tensor:
    """The losses of the step to come, (K,)."""
    stack = training.stack
    losses: Tensor = stack.algorithm.loss(stack.network, batch_of(training), clock_of(training))
    return losses


def test_arms_prediction_of_a_row_depends_on_the_rows_it_is_given_with() -> None:
    training = begun("arm", {})
    inputs = rows(6).inputs
    full = training.stack.answer(*inputs)
    half = training.stack.answer(*(x[:3] for x in inputs))
    order = torch.tensor([4, 2, 0, 1, 5, 3])
    assert not torch.allclose(full[:, :3], half)
    assert close(training.stack.answer(*(x[order] for x in inputs)), full[:, order])


def test_a_head_that_is_certain_of_a_class_is_no_division_by_zero() -> None:
    training = begun("drm", {"certainty": 5.0})
    with torch.no_grad():
        training.stack.network.environment_heads.bias[:, 0] = 1e4
    scores = training.stack.answer(*rows().inputs).softmax(-1)
    assert torch.isfinite(scores).all()
    assert (scores[..., 0] > 0.99).all()


PEGO: dict[str, Any] = {"groups": 3, "rank": 2, "pretrain_percent": 50}


def test_pego_trains_all_but_the_updates_then_the_updates_and_the_head_alone() -> None:
    training = begun("pego", PEGO, common=ADAM, steps=6)
    states = [weights(training, 0)]
    for _ in range(6):
        training.step()
        states.append(weights(training, 0))
    start, middle, end = states[0], states[3], states[6]
    changed = [
        {name for name in start if not torch.equal(a[name], b[name])} for a, b in ((start, middle), (middle, end))
    ]
    assert changed[0] == {"hidden.0.weight", "hidden.0.bias", "head.weight", "head.bias"}
    assert changed[1] == {"hidden.0.down.weight", "hidden.0.up.weight", "head.weight", "head.bias"}


def test_before_its_updates_are_trained_pego_is_empirical_risk_minimisation() -> None:
    pego, erm = begun("pego", PEGO | {"lr": 0.1}, steps=6), begun("erm", {}, steps=6)
    for training in (pego, erm):
        for _ in range(3):
            training.step()
    inputs = rows().inputs
    assert torch.equal(pego.stack.answer(*inputs), erm.stack.answer(*inputs))


def test_pego_that_pretrains_to_the_end_freezes_nothing() -> None:
    training = begun("pego", PEGO | {"pretrain_percent": 100}, common=ADAM, steps=3)
    before = weights(training, 0)["hidden.0.weight"]
    while not training.done:
        training.step()
    assert not training.stack.algorithm.frozen.any()
    assert not torch.equal(before, weights(training, 0)["hidden.0.weight"])


def test_endef_mixes_in_what_entities_alone_say_and_learns_that_too() -> None:
    each: list[dict[str, Any]] = [
        {"entity_share": 0.1, "entity_weight": 0.2, "masked": 0.3, "dropped": 0.3, "lr": 0.1},
        {"entity_share": 0.4, "entity_weight": 1.5, "masked": 0.0, "dropped": 0.0, "lr": 0.1},
    ]
    training = begun("endef", *each, sizes=MIXED)
    batch, clock, before = batch_of(training), clock_of(training), [weights(training, k) for k in (0, 1)]
    drawn = draw_uniform(clock.draw("entities"), batch.inputs[0].shape[1:], torch.float64)
    losses, expected = loss_of(training), []
    training.step()
    for k, (w, settings) in enumerate(zip(before, each, strict=True)):
        biased, seen = [], []
        for row, (ids, numbers) in enumerate(zip(batch.inputs[0][k].tolist(), batch.inputs[1][k], strict=True)):
            total = torch.zeros(64, dtype=torch.float64)
            for field, (first, mask) in enumerate(((0, 4), (5, 8))):
                chance = float(drawn[k, row, field])
                masked = chance < settings["masked"]
                if masked or chance >= settings["masked"] + settings["dropped"]:
                    total = total + w["entities.table.weight"][mask if masked else first + ids[field]]
            biased.append(perceptron(w, total, "entities.reader", 2))
            hot = [F.one_hot(torch.tensor(id), size) for id, size in zip(ids, MIXED.categories, strict=True)]
            seen.append(torch.cat([*hot, numbers]))
        y, z, a = batch.target[k], torch.stack(biased), settings["entity_share"]
        joint = (1 - a) * head(w, encode(w, torch.stack(seen))) + a * z
        expected.append(F.cross_entropy(joint, y) + settings["entity_weight"] * F.cross_entropy(z, y))
    assert close(losses, torch.stack(expected))
    assert moved_along(training, before, expected)


def test_endef_predicts_without_its_entity_model() -> None:
    training = begun("endef", {}, sizes=MIXED)
    inputs = rows(sizes=MIXED).inputs
    before = training.stack.answer(*inputs)
    with torch.no_grad():
        training.stack.network.entities.table.weight.fill_(9.0)
    assert torch.equal(before, training.stack.answer(*inputs))


def test_endef_masks_and_drops_at_the_rates_it_is_told_and_never_both() -> None:
    training = begun("endef", {"masked": 0.1, "dropped": 0.3}, sizes=MIXED)
    ids = torch.zeros(1, 20_000, 2, dtype=torch.int64)
    masked, dropped = training.stack.algorithm.hidden(ids, clock_of(training))
    assert float(masked.double().mean()) == pytest.approx(0.1, abs=0.01)
    assert float(dropped.double().mean()) == pytest.approx(0.3, abs=0.01)
    assert not (masked & dropped).any()


Weights = dict[str, Tensor]


def risk(w: Weights, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(head(w, encode(w, x)), y)


def slopes_of(loss: Tensor, w: Weights, graph: bool = False) -> Weights:
    result = torch.autograd.grad(loss, list(w.values()), create_graph=graph, retain_graph=True)
    return dict(zip(w, result, strict=True))


@pytest.mark.parametrize("first_order", [False, True])
def test_mldg_adds_the_risk_of_held_out_environments_after_a_step_down_the_others(first_order: bool) -> None:
    each = [{"inner_lr": 0.5, "meta_weight": 2.0}, {"inner_lr": 0.05, "meta_weight": 0.3}]
    training = begun("mldg", *(item | {"first_order": first_order} for item in each))
    batch, clock, before = batch_of(training), clock_of(training), [weights(training, k) for k in (0, 1)]
    held_out = draw_permutations(clock.draw("split"), ENVIRONMENTS)[:, 0]
    losses = training.stack.algorithm.loss(training.stack.network, batch, clock)
    training.step()
    expected = []
    for k, settings in enumerate(each):
        x, y, w = batch.inputs[1][k], batch.target[k], before[k]
        test = torch.arange(len(y)) // SHARE == held_out[k]
        train_risk = risk(w, x[~test], y[~test])
        inner = slopes_of(train_risk, w, graph=not first_order)
        there = {name: value - settings["inner_lr"] * inner[name] for name, value in w.items()}
        expected.append(train_risk + settings["meta_weight"] * risk(there, x[test], y[test]))
    assert close(losses, torch.stack(expected))
    assert moved_along(training, before, expected)


def test_fish_visits_environments_in_another_order_each_step() -> None:
    training = begun("fish", {}, {})
    orders = []
    for _ in range(5):
        orders.append(draw_permutations(clock_of(training).draw("order"), ENVIRONMENTS))
        training.step()
    assert len({tuple(row) for order in orders for row in order.tolist()}) > 2


def test_a_step_of_udim_is_sams_and_the_inconsistency_of_moved_inputs() -> None:
    each = [
        {"sharpness": 0.05, "reach": 0.5, "inconsistency": 2.0},
        {"sharpness": 0.2, "reach": 3.0, "inconsistency": 0.4},
    ]
    training = begun("udim", *(item | {"sam_percent": 0, "batch_size": 7} for item in each))
    batch, before = batch_of(training), [weights(training, k) for k in (0, 1)]
    training.step()
    for k, settings in enumerate(each):
        x, y, w = batch.inputs[1][k].clone().requires_grad_(), batch.target[k], before[k]
        loss = risk(w, x, y)
        slopes = slopes_of(loss, w, graph=True)
        norm = torch.cat([slope.flatten() for slope in slopes.values()]).norm()
        (uphill,) = torch.autograd.grad(loss + settings["sharpness"] * norm, x, retain_graph=True)
        moved = (x + settings["reach"] * F.normalize(uphill, dim=1)).detach()
        climbed = {
            name: (w[name] + settings["sharpness"] * slopes[name] / norm).detach().requires_grad_() for name in w
        }
        flat = slopes_of(risk(climbed, x.detach(), y), climbed)

        def of_rows(inputs: Tensor, w: Weights = w, y: Tensor = y) -> Tensor:
            """Each row's gradient by the head, one by one."""
            result = []
            for row, label in zip(inputs, y, strict=True):
                own = risk(w, row[None], label[None])
                parts = torch.autograd.grad(own, [w["head.weight"], w["head.bias"]], create_graph=True)
                result.append(torch.cat([part.flatten() for part in parts]))
            return torch.stack(result)

        here, there = of_rows(x.detach()), of_rows(moved)
        apart = (here.var(0, unbiased=False) - there.var(0, unbiased=False)).square().mean() / 4
        punished = slopes_of(apart + there.square().mean(), w)
        for name, value in weights(training, k).items():
            step = flat[name] + settings["inconsistency"] * punished[name]
            assert close(value, w[name] - 0.1 * step)


def test_udim_begins_with_plain_sharpness_aware_steps() -> None:
    warm = begun("udim", {"sam_percent": 100})
    sam = begun("erm", {"sharpness": 0.05})
    for training in (warm, sam):
        for _ in range(3):
            training.step()
    assert all(torch.equal(value, weights(sam, 0)[name]) for name, value in weights(warm, 0).items())


def test_udim_forgets_adams_moments_when_its_penalty_begins() -> None:
    training = begun("udim", {"sam_percent": 50}, common={"batch_size": SHARE, "width": 6}, steps=4)
    steps = []
    for _ in range(4):
        training.step()
        steps.append(training.optimiser_steps["main"].optimiser.state()["steps"])
    assert steps == [1, 2, 1, 2]


def test_a_class_that_a_batch_lacks_does_not_shrink_the_conditional_loss() -> None:
    training = begun("cdann", {})
    batch = batch_of(training)
    errors = torch.rand(1, batch.target.shape[1], dtype=torch.float64)
    one_class = type(batch)(batch.inputs, torch.full_like(batch.target, CLASSES - 1), batch.rows)
    assert close(training.stack.algorithm.average(errors, one_class), errors.mean(1))


def test_without_muted_rows_self_challenging_spares_all_but_the_one_that_loses_most() -> None:
    training = begun("rsc", {"muted_features": 0.5, "muted_rows": 0.0, "batch_size": 12})
    network, batch = training.stack.network, batch_of(training)
    features = network.encode(network.embed(*batch.inputs))
    stored = training.stack.algorithm.compute_mask(network.head, features.detach(), batch.target)
    assert ((stored == 0).any(-1).sum(1) == 1).all()


def encoded(w: dict[str, Tensor], x: Tensor, name: str = "") -> Tensor:
    return torch.relu(x @ w[f"{name}hidden.0.weight"].T + w[f"{name}hidden.0.bias"])


def test_mtl_reads_a_test_row_beside_the_mean_of_the_rows_given_with_it() -> None:
    stack = finished(begun("mtl", {}, {}, steps=2))
    x = rows().inputs[1]
    answers = stack.answer(torch.zeros(12, 0, dtype=torch.int64), x)
    w = {name: value[1].detach() for name, value in stack.network.named_parameters()}
    z = encoded(w, x, "network.")
    beside = torch.cat([z, z.mean(0).expand_as(z)], dim=1)
    assert close(answers[1], beside @ w["head.weight"].T + w["head.bias"])


def test_selfreg_pairs_each_row_with_one_of_its_class_and_every_row_is_a_partner_once() -> None:
    target = torch.randint(3, (4, 30), generator=torch.Generator().manual_seed(2))
    result = selfreg.draw_partners(make_keys(["a", "b", "c", "d"]), target)
    assert torch.equal(target.gather(1, result), target)
    assert torch.equal(result.sort(dim=1).values, torch.arange(30).expand(4, 30))
    assert 0 < (result == torch.arange(30)).float().mean() < 0.3
    single = selfreg.draw_partners(make_keys(["a"]), torch.arange(5)[None])
    assert torch.equal(single, torch.arange(5)[None])


@pytest.mark.parametrize("train_projection", [True, False])
def test_selfreg_trains_its_projection_where_it_is_told_to(train_projection: bool) -> None:
    built = begun("selfreg", {}, common=PLAIN | {"train_projection": train_projection})
    before = weights(built, 0)
    built.step()
    moved = {name for name, value in weights(built, 0).items() if not torch.equal(value, before[name])}
    assert any(name.startswith("projection") for name in moved) == train_projection
    assert "head.weight" in moved


@pytest.mark.parametrize("within_class", [True, False])
def test_lisa_partners_share_the_label_or_the_environment_and_not_both(within_class: bool) -> None:
    drawn = torch.Generator().manual_seed(3)
    target, group = torch.randint(4, (50, 20), generator=drawn), torch.randint(3, (50, 20), generator=drawn)
    target[0], group[1] = 7, 0
    result = lisa.draw_partners(
        make_keys([str(position) for position in range(50)]), target, group, torch.full((50,), within_class)
    )
    alone = 0
    seen = set()
    for replica in range(50):
        for row in range(20):
            fits = [
                other
                for other in range(20)
                if (target[replica, other] == target[replica, row]) == within_class
                and (group[replica, other] == group[replica, row]) != within_class
            ]
            partner = int(result[replica, row])
            alone += not fits
            assert partner in fits if fits else partner == row
            seen |= {(replica, row, partner)} if len(fits) > 1 else set()
    assert alone >= 20, "some rows have no partner, and stay as they are"
    assert len(seen) > 500


def test_lisa_leaves_rows_as_they_are_where_the_drawn_strategy_has_no_partner_for_them() -> None:
    data = rows()
    alike = data.changed(data.weight, torch.zeros_like(data.target))
    [as_they_are] = trained("group_reweighting", {}, data=alike, names=("same",))
    never, always = trained("lisa", {"within_class": 0.0}, {"within_class": 1.0}, names=("same", "same"), data=alike)
    assert all(close(never[name], value) for name, value in as_they_are.items()), "one class has no other label"
    assert not torch.equal(never["head.weight"], always["head.weight"])


SHORT = {"assignment_steps": 50, "assignment_rate": 0.1, "first_percent": 50}


def test_rows_that_rely_on_the_spurious_feature_are_told_from_those_that_defy_it() -> None:
    """Labels agree with the only input for four rows of five: a network that trusts it splits the rows by whether they
    do."""
    agrees = torch.arange(200) % 5 != 0
    target = torch.arange(200) % 2
    sign = torch.where(agrees, 1.0, -1.0) * (2.0 * target - 1)
    logits = torch.stack([-sign, sign], dim=1)[None].double()
    start = 0.01 * torch.randn(1, 200, generator=torch.Generator().manual_seed(1)).double()
    result = (
        optimise_assignment(compute_slopes(logits, target[None]), start, 2000, torch.tensor([0.01]).double())[0] > 0
    )
    assert len(set(result[agrees].tolist())) == len(set(result[~agrees].tolist())) == 1
    assert result[agrees][0] != result[~agrees][0]


def irm(w: dict[str, Tensor], x: Tensor, y: Tensor, second: Tensor, penalty: float) -> Tensor:
    risks, squares = [], []
    for own in (~second, second):
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        if not own.any():
            risks.append(torch.zeros(()).double())
            squares.append(torch.zeros(()).double())
            continue
        risk = F.cross_entropy(scale * head(w, encode(w, x[own])), y[own])
        risks.append(risk)
        squares.append(torch.autograd.grad(risk, scale, create_graph=True)[0] ** 2)
    return torch.stack(risks).mean() + penalty * torch.stack(squares).mean()


@pytest.mark.parametrize("batch_size", [0, 5])
def test_after_plain_training_a_fresh_network_is_trained_by_irm_on_the_inferred_environments(batch_size: int) -> None:
    each = ({"penalty": 2.0}, {"penalty": 7.0})
    built = begun("eiil", *each, common=PLAIN | SHORT | {"batch_size": batch_size, "anneal_percent": 0}, steps=6)
    assert built.stages == (3, 3)
    for step in range(6):
        batch, before = batch_of(built), [weights(built, replica) for replica in range(2)]
        second = built.stack.algorithm.second
        losses = []
        for k, (w, own) in enumerate(zip(before, each, strict=True)):
            x, y = batch.inputs[1][k], batch.target[k]
            plain = F.cross_entropy(head(w, encode(w, x)), y)
            losses.append(plain if step < 3 else irm(w, x, y, second[k][batch.rows[k]], own["penalty"]))  # type: ignore[index]
        built.step()
        if step != 2:
            assert moved_along(built, before, losses), step
    assert second.any(1).all() and not second.all(1).any(), "both environments have rows"  # type: ignore[operator]
    assert len(rows()) == second.shape[1]
