"""Penalties on environments' risks and features: the papers' formulas, for every replica with its own settings."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms import causirl
from farshift.baselines.algorithms._environment_risks import compute_environment_risks as of_environments
from farshift.baselines.encoding.encoding import EOS, PAD
from farshift.baselines.training.sampler import Batch
from torch import Tensor, nn

from .three_environments import Environments, assert_trains_as, risks, training

TWO: tuple[dict[str, Any], dict[str, Any]] = ({"penalty": 0.5}, {"penalty": 7.0})


def vrex(model: nn.Sequential, given: Environments, settings: dict[str, Any]) -> Tensor:
    each = risks(model, given)
    return each.mean() + settings["penalty"] * ((each - each.mean()) ** 2).mean()


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
