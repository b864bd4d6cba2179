"""Penalties on environments' risks and features: the papers' formulas, for every replica with its own settings."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import causirl, coral, ib_erm, irm, mmd
from farshift.baselines.algorithms._environment_risks import compute_environment_risks as of_environments
from farshift.baselines.encoding.encoding import EOS, PAD
from farshift.baselines.training.losses import group_by_environment
from farshift.baselines.training.sampler import Batch
from farshift.core.errors import ModelError
from torch import Tensor, nn

from .three_environments import ENVIRONMENTS, ROWS, Environments, assert_trains_as, environments, plain, risks, training

TWO: tuple[dict[str, Any], dict[str, Any]] = ({"penalty": 0.5}, {"penalty": 7.0})


def scalar_slope(model: nn.Sequential, x: Tensor, y: Tensor) -> Tensor:
    scale = torch.ones((), dtype=x.dtype, requires_grad=True)
    [slope] = torch.autograd.grad(F.cross_entropy(model(x) * scale, y), scale, create_graph=True)
    return slope


def irm_of_halves(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    penalties = [scalar_slope(model, x[::2], y[::2]) * scalar_slope(model, x[1::2], y[1::2]) for x, y in given]
    return risks(model, given).mean() + settings["penalty"] * torch.stack(penalties).mean()


def test_irm_takes_the_product_of_two_halves_slopes() -> None:
    assert_trains_as(training("irm", *TWO, anneal_percent=0), lambda: irm_of_halves)


class ColouredDigits:
    """The loop of the IRM authors' ColoredMNIST code: anneal, add the squared norm, rescale."""

    def __init__(self, switch: int) -> None:
        self.switch, self.step = switch, 0

    def __call__(self, model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
        penalty = torch.stack([scalar_slope(model, x, y) ** 2 for x, y in given]).mean()
        weight = settings["penalty"] if self.step >= self.switch else 1.0
        loss = risks(model, given).mean() + settings["l2"] * sum(p.norm() ** 2 for p in model.parameters())
        loss = loss + weight * penalty
        self.step += 1
        return loss / weight if weight > 1.0 else loss


def test_irm_anneals_decays_and_rescales_as_the_authors_of_coloured_mnist_do() -> None:
    each = ({"penalty": 0.5, "l2": 0.1}, {"penalty": 50.0, "l2": 0.3})
    train = training("irm", *each, halves=False, rescale=True, restart=False, anneal_percent=38)
    assert_trains_as(train, lambda: ColouredDigits(2))


def test_the_invariance_penalty_is_zero_where_the_scale_of_logits_is_optimal_everywhere() -> None:
    """Eight labels of ten are 0 in both environments, and the logits say so."""
    target = torch.tensor([0] * 8 + [1] * 2).repeat(2)[None]
    batch = Batch((), target, target, environments=2)
    calibrated = torch.tensor([0.8, 0.2], dtype=torch.float64).log().expand(1, 20, 2)
    assert irm.compute_invariance_penalty(calibrated, batch, halves=False).item() == pytest.approx(0, abs=1e-30)
    assert irm.compute_invariance_penalty(2 * calibrated, batch, halves=False).item() > 0.01


def test_halves_of_one_row_are_refused() -> None:
    with pytest.raises(ModelError, match="batch_size = 1: a batch of one row has no halves"):
        training("irm", {}, batch_size=1)


def vrex(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    each = risks(model, given)
    return each.mean() + settings["penalty"] * ((each - each.mean()) ** 2).mean()


def test_vrex_adds_the_variance_of_the_risks() -> None:
    assert_trains_as(training("vrex", *TWO, anneal_percent=0), lambda: vrex)


@pytest.mark.parametrize("restart", [True, False])
def test_an_annealed_penalty_waits_for_its_share_of_the_steps_and_may_forget_the_momentum(restart: bool) -> None:
    class Annealed:
        step = 0

        def __call__(self, model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
            weight = settings["penalty"] if self.step >= 2 else settings["penalty_before"]
            self.step += 1
            return vrex(model, given, {"penalty": weight})

    train = training("vrex", *TWO, anneal_percent=40, restart=restart, penalty_before=0.25)
    assert_trains_as(train, Annealed, restarts=(2,) if restart else ())


def coral_by_pairs(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    features = [model[:2](x) for x, _ in given]
    distances = [
        (a.mean(0) - b.mean(0)).pow(2).mean() + (a.T.cov() - b.T.cov()).pow(2).mean()
        for a, b in combinations(features, 2)
    ]
    return risks(model, given).mean() + settings["penalty"] * torch.stack(distances).mean()


def test_coral_aligns_means_and_covariances_of_every_pair() -> None:
    assert_trains_as(training("coral", *TWO), lambda: coral_by_pairs)


def test_causirl_aligns_two_mixtures_of_the_environments() -> None:
    features = torch.randn(2, 12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    first = torch.zeros(2, 12, dtype=torch.bool)
    first[0, [0, 1, 4, 8, 9]] = True
    first[1, 3] = True
    result = causirl.compute_discrepancy(features, first)
    item, other = features[0][first[0]], features[0][~first[0]]
    expected = (item.mean(0) - other.mean(0)).pow(2).mean() + (item.T.cov() - other.T.cov()).pow(2).mean()
    assert result[0].item() == pytest.approx(expected.item())
    assert result[1] == 0, "a single row has no covariance"


def test_causirl_adds_its_discrepancy_to_the_risk() -> None:
    train = training("causirl", {"penalty": 0.0}, {"penalty": 5.0}, {"penalty": 10.0})
    model, given = plain(train.stack.network, 0), environments(train, 0, 0)
    others = [plain(train.stack.network, position) for position in (1, 2)]
    train.step()
    bare, *more = train.losses.tolist()
    assert bare == pytest.approx(risks(model, given).mean().item())
    for position, (loss, other) in enumerate(zip(more, others, strict=True), 1):
        assert loss > risks(other, environments(train, position, 0)).mean().item()


def test_group_reweighting_gives_every_environment_the_same_say() -> None:
    assert_trains_as(training("group_reweighting", {}, {}), lambda: lambda model, given, _: risks(model, given).mean())


def mmd_by_pairs(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    def kernel(a: Tensor, b: Tensor) -> Tensor:
        squares = (a[:, None] - b[None]).pow(2).sum(-1)
        return sum(torch.exp(-gamma * squares) for gamma in (0.001, 0.01, 0.1, 1, 10, 100, 1000)).mean()  # type: ignore[union-attr]

    features = [model[:2](x) for x, _ in given]
    distances = [kernel(a, a) + kernel(b, b) - 2 * kernel(a, b) for a, b in combinations(features, 2)]
    return risks(model, given).mean() + settings["penalty"] * torch.stack(distances).mean()


def test_mmd_sums_gaussian_kernels_over_every_pair() -> None:
    assert_trains_as(training("mmd", *TWO), lambda: mmd_by_pairs, within=1e-8)


@pytest.mark.parametrize("discrepancy", [coral.coral_loss, mmd.compute_mmd], ids=["coral", "mmd"])
def test_environments_of_equal_features_have_no_discrepancy_and_others_have_one(discrepancy: Any) -> None:
    features = torch.randn(2, 1, 8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    same = features.expand(2, 3, 8, 4)
    assert discrepancy(same).tolist() == pytest.approx([0, 0], abs=1e-12)
    assert (discrepancy(torch.cat([features, features + 1, features], dim=1)) > 0.1).all()


def bottleneck(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    spread = torch.stack([model[:2](x).var(0).mean() for x, _ in given]).mean()
    return risks(model, given).mean() + settings["penalty"] * spread


def test_ib_erm_adds_the_variance_of_features_within_environments() -> None:
    assert_trains_as(training("ib_erm", *TWO, anneal_percent=0), lambda: bottleneck)


def test_ib_irm_adds_the_bottleneck_at_the_switch_and_the_invariance_penalty_from_the_start() -> None:
    class Both:
        step = 0

        def __call__(self, model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
            full = self.step >= 2
            self.step += 1
            weight = settings["penalty"] if full else settings["penalty_before"]
            loss = irm_of_halves(model, given, {"penalty": weight})
            spread = bottleneck(model, given, {"penalty": settings["bottleneck"]}) - risks(model, given).mean()
            return loss + spread if full else loss

    each = ({"penalty": 0.5, "bottleneck": 2.0}, {"penalty": 7.0, "bottleneck": 0.1})
    assert_trains_as(training("ib_irm", *each, anneal_percent=40), Both, restarts=(2,))


def test_the_bottleneck_does_not_see_differences_between_environments() -> None:
    features = torch.randn(1, ENVIRONMENTS * ROWS, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch = Batch(
        (), torch.zeros(1, ENVIRONMENTS * ROWS), torch.zeros(1, ENVIRONMENTS * ROWS), environments=ENVIRONMENTS
    )
    apart = group_by_environment(features, batch) + 10 * torch.arange(ENVIRONMENTS).view(-1, 1, 1)
    assert ib_erm.compute_bottleneck(apart).item() == pytest.approx(
        ib_erm.compute_bottleneck(group_by_environment(features, batch)).item()
    )


def spectral(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    [(x, y)] = given
    return F.cross_entropy(model(x), y) + settings["penalty"] * model(x).pow(2).mean()


def test_spectral_decoupling_adds_the_mean_squared_logit() -> None:
    assert_trains_as(training("sd", *TWO), lambda: spectral)


def test_the_risk_of_an_environment_of_texts_is_the_mean_over_texts_of_the_mean_over_their_tokens() -> None:
    logits = torch.randn(2, 4, 3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([[[4, 5, EOS], [EOS, PAD, PAD], [5, EOS, PAD], [4, 4, EOS]]]).expand(2, 4, 3)
    batch = Batch((), target, torch.zeros(2, 4, dtype=torch.int64), environments=2)
    texts = torch.stack(
        [
            torch.stack(
                [F.cross_entropy(z[:length], y[:length]) for z, y, length in zip(item, own, (3, 1, 2, 3), strict=True)]
            )
            for item, own in zip(logits, target, strict=True)
        ]
    )
    torch.testing.assert_close(of_environments(lambda: logits, batch), texts.view(2, 2, 2).mean(-1))
