"""Methods in weight space: averages of weights, and weights between early and last ones."""

from __future__ import annotations

import pytest
import torch
from farshift.baselines.algorithms._norms import recompute_running_moments, use_batch_moments
from farshift.baselines.algorithms.lines import find_parameter_depths
from farshift.baselines.layers.norm import BatchNorm
from farshift.baselines.training.trainer import Training
from torch import Tensor, nn

from .shifted_stacks import IMAGES, RESNET, asked, finished, near, steps_of, wide_rows
from .small_stacks import ADAM, begun


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
    return all(near(item, other) for item, other in zip(found, expected, strict=True))


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
    assert near(norm.running_mean, torch.stack([item.running_mean for item in oracle]))
    biased = torch.stack([item.running_var for item in oracle])
    assert near(norm.running_var, biased)


def test_moments_taken_over_several_batches_are_those_of_torch_with_a_cumulative_mean() -> None:
    data = wide_rows(20, sizes=IMAGES)
    network = begun("erm", {}, network="resnet", common=RESNET, data=data, sizes=IMAGES).stack.network
    recompute_running_moments(network, data, rows=7)
    first = network.body[0]
    oracle = nn.BatchNorm2d(2, momentum=None, dtype=torch.float64)
    for piece in range(3):
        oracle(first.convolution(network.embed(*(x[None, piece::3] for x in data.inputs)))[0])
    assert near(first.norm.running_mean[0], oracle.running_mean)
    assert near(first.norm.running_var[0], oracle.running_var)
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
    assert not near(by_their_own, as_trained)
