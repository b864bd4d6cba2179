"""Algorithms that read a row beside others: marginal transfer learning, SelfReg, LISA, by formulas written row by row."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import lisa, selfreg
from farshift.baselines.replicas.rng import make_keys
from torch import Tensor

from .shifted_stacks import finished
from .small_stacks import PLAIN, batch_of, begun, clock_of, close, moved_along, rows, trained, weights


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
def test_selfreg_draws_rows_to_partners_and_mixtures_of_partners(train_projection: bool) -> None:
    built = begun("selfreg", {}, {"feature_weight": 1.5}, common=PLAIN | {"train_projection": train_projection})
    for step in range(2):
        batch, clock = batch_of(built), clock_of(built)
        first, second = (selfreg.draw_partners(clock.draw(name), batch.target) for name in ("first", "second"))
        share = selfreg.draw_beta(clock.draw("share"), (1,), 0.5)
        before = [weights(built, replica) for replica in range(2)]
        losses = []
        for replica, w in enumerate(before):
            z = encoded(w, batch.inputs[1][replica])
            o = z @ w["head.weight"].T + w["head.bias"]
            g = z
            for position in range(3):
                g = g @ w[f"projection.layers.{position}.weight"].T + w[f"projection.layers.{position}.bias"]
                g = (g - g.mean(0)) / (g.var(0, correction=0) + 1e-5).sqrt()
                g = g * w[f"projection.norms.{position}.weight"] + w[f"projection.norms.{position}.bias"]
                g = torch.relu(g) if position < 2 else g
            part, weight = share[replica], (0.3, 1.5)[replica]
            o1, o2, g1, g2 = o[first[replica]], o[second[replica]], g[first[replica]], g[second[replica]]
            risk = F.cross_entropy(o, batch.target[replica])
            apart = part * (F.mse_loss(o, o1) + weight * F.mse_loss(z, g1))
            apart = apart + (1 - part) * F.mse_loss(o, part * o1 + (1 - part) * o2)
            apart = apart + (1 - part) * weight * F.mse_loss(z, part * g1 + (1 - part) * g2)
            losses.append(risk + min(1.0, risk.item()) * apart.squeeze())
        built.step()
        assert built.losses.tolist() == pytest.approx([loss.item() for loss in losses], abs=1e-12)
        if train_projection:
            assert moved_along(built, before, losses), step
        else:
            after = weights(built, 0)
            assert torch.equal(after["projection.layers.0.weight"], before[0]["projection.layers.0.weight"])
            assert not torch.equal(after["head.weight"], before[0]["head.weight"])


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
