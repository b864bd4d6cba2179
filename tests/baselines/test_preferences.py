"""Reward models of pairs: swapping the replies swaps the scores, and votes flip the pairs that were labelled wrongly."""

from typing import Any

import torch
from farshift.baselines.algorithms.preference_strength import compute_strength
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.networks.reward import Network
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training

from .small_stacks import begun

PART, SIZES = 3, Sizes(2, numbers=9)
NONE = torch.zeros(1, 40, 0, dtype=torch.int64)


def pairs(wrong: int, count: int = 40) -> Data:
    """Pairs of which that reply is chosen whose first number is larger, except in the first `wrong` rows."""
    numbers = torch.randn(count, 3 * PART, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    numbers[:, PART] = torch.where(numbers[:, PART] > 0, 2.0, -2.0)
    numbers[:, 2 * PART] = -numbers[:, PART]
    target = (numbers[:, 2 * PART] > numbers[:, PART]).long()
    target[:wrong] = 1 - target[:wrong]
    ones = torch.ones(count)
    return Data((NONE[0], numbers), target[None], ones.long(), ones[None].double())


def test_swapping_the_replies_swaps_the_scores_and_so_negates_the_logit() -> None:
    network = Network(SIZES, {"width": 5, "depth": 1, "dropout": 0.0})
    prompt, first, second = torch.randn(1, 40, 9).split(PART, dim=-1)
    scores = network(NONE, torch.cat([prompt, first, second], -1))
    assert scores.shape == (1, 40, 2)
    swapped = network(NONE, torch.cat([prompt, second, first], -1))
    torch.testing.assert_close(swapped, scores.flip(-1))
    assert (scores[..., 0] != scores[..., 1]).all()
    assert network.width == 10 == network.encode(torch.zeros(1, 4, 9)).shape[-1]


def test_cross_entropy_of_the_scores_is_the_loss_of_bradley_and_terry() -> None:
    scores, target = torch.randn(1, 40, 2), torch.randint(2, (1, 40))
    apart = compute_strength(scores, target)
    chosen, rejected = scores.gather(2, target[..., None]), scores.gather(2, 1 - target[..., None])
    torch.testing.assert_close(apart, (chosen - rejected)[..., 0])
    expected = torch.nn.functional.cross_entropy(scores[0], target[0], reduction="none")
    torch.testing.assert_close(-torch.nn.functional.logsigmoid(apart)[0], expected)


def begin(data: Data, own: dict[str, Any], steps: int) -> Training:
    common = {"optimiser": "sgd", "momentum": 0.0, "lr": 0.5, "batch_size": 0, "width": 5} | own
    names = ("replica 0",)
    return begun(
        "preference_strength", {}, network="reward", common=common, data=data, sizes=SIZES, steps=steps, names=names
    )


def test_votes_flip_the_pairs_that_were_labelled_wrongly_and_their_strength_is_the_margin() -> None:
    data, steps = pairs(wrong=4), 60
    own = {"members": 2, "vote_percent": 50, "flip": 0.1, "margin": 0.5}
    training = begin(data, own, steps)
    for _ in range(steps):
        training.step()
    strength = compute_strength(training.stack.algorithm.scores, data.target)[0]
    assert (strength[:4] < 0).all(), "wrong pairs are voted down"
    assert (strength[4:] > 0).all()
    network = training.stack.network
    answers = network(NONE.expand(1, 40, 0), data.inputs[1][None]).argmax(-1)[0]
    assert answers[:4].tolist() == (1 - data.target[0, :4]).tolist()
    assert answers[4:].tolist() == data.target[0, 4:].tolist()


def test_a_margin_is_subtracted_from_the_difference_of_the_scores_in_the_last_stage_alone() -> None:
    data, steps = pairs(wrong=0), 4
    own = {"members": 1, "vote_percent": 50, "flip": 0.0, "margin": 2.0}
    training = begin(data, own, steps)
    losses = []
    for _ in range(steps):
        before = training.stack.network
        apart = compute_strength(before(NONE, data.inputs[1][None]), data.target).detach()
        training.step()
        losses.append((apart, float(training.losses[0])))
    torch.testing.assert_close(losses[0][1], float(-torch.nn.functional.logsigmoid(losses[0][0]).mean()))
    strength = compute_strength(training.stack.algorithm.scores, data.target)
    expected = -torch.nn.functional.logsigmoid(losses[3][0] - 2.0 * strength).mean()
    torch.testing.assert_close(losses[3][1], float(expected))
