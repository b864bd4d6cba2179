"""Easy-to-hard methods: networks that think longer on longer inputs, and students of weak teachers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import PAD, Sizes
from farshift.baselines.networks.deep_thinking import Convolution, Network
from farshift.baselines.replicas.stacked import stack_networks
from farshift.baselines.training.checkpoint import resume_training, save_checkpoint
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .small_sequences import TINY, alone, batch, check_alike, clock, settings, training
from .toys import PARITY, accuracy, bits, recipe, trained

SIZES = Sizes(6, source=6, aligned=True)
SOURCE = torch.tensor([[4, 5, 5, 4, 5], [5, 4, PAD, PAD, PAD]])


def thinker(seeds: Sequence[int] = (0,), **own: Any) -> Any:
    built = []
    for seed in seeds:
        torch.manual_seed(seed)
        built.append(Network(SIZES, TINY["deep_thinking"] | {"iterations_per_token": 2} | own).double())
    return stack_networks(built)


def test_a_convolution_is_that_of_torch_at_every_token() -> None:
    torch.manual_seed(0)
    layer = stack_networks([Convolution(3, 5).double() for _ in range(2)])
    x, seen = torch.randn(2, 4, 7, 3, dtype=torch.float64), torch.ones(2, 4, 7, 1, dtype=torch.float64)
    result = layer(x, seen)
    for position in range(2):
        before, here, after = layer.places.weight[position].chunk(3)
        weight = torch.stack([before, here, after], dim=-1)
        plain = F.conv1d(x[position].transpose(1, 2), weight, padding=1).transpose(1, 2)
        torch.testing.assert_close(result[position], plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("replicas", [1, 3])
def test_without_gradients_rows_lie_packed_and_come_to_the_same(replicas: int) -> None:
    network = thinker(range(replicas), iterations=3).eval()
    ids = torch.tensor(
        [[5, 4, 5, 4, 5, 5, 4], [4, 5, *[PAD] * 5], [5, 5, 5, 4, 4, PAD, PAD], [PAD] * 7, [5, 4, *[PAD] * 5]]
    )
    source = ids.expand(replicas, *ids.shape)
    assert not network._packs(source)
    with_gradients = network(source, source)
    with torch.no_grad():
        assert network._packs(source)
        torch.testing.assert_close(network(source, source), with_gradients.detach(), rtol=0, atol=1e-12)


def test_replicas_that_read_different_rows_are_not_packed() -> None:
    network = thinker((0, 1)).eval()
    with torch.no_grad():
        assert not network._packs(torch.stack([SOURCE, SOURCE.flip(0)]))
        assert network._packs(torch.stack([SOURCE, SOURCE]))


def test_iterations_in_evaluation_grow_with_a_rows_own_length() -> None:
    network = thinker().eval()
    calls = 0
    think = network.think

    def counted(*parts: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return think(*parts)  # type: ignore[no-any-return]

    network.think = counted
    full = network(SOURCE[None], SOURCE[None])
    assert calls == 2 * 5
    calls = 0
    network(SOURCE[None, 1:, :2], SOURCE[None, 1:, :2])
    assert calls == 4, "never fewer than in training"
    x, state, seen = network.begin(SOURCE[None])
    for _ in range(4):
        state = think(x, state, seen)
    torch.testing.assert_close(full[:, 1], network.head(network.settled(state, seen))[:, 1], rtol=0, atol=1e-12)


def test_skipped_and_taught_iterations_are_uniform_within_the_most() -> None:
    built = training("deep_thinking", "progressive", [{}], 1, [f"r{i}" for i in range(1)])
    many = clock(built)
    many = type(many)(0, 1, 0, 0, torch.arange(20000))
    skipped, taught = built.stack.algorithm.drawn(4, many)  # type: ignore[operator]
    for n in range(4):
        here = taught[skipped == n]
        assert len(here) / 20000 == pytest.approx(0.25, abs=0.02)
        assert torch.bincount(here, minlength=6)[1 : 5 - n] / len(here) == pytest.approx(1 / (4 - n), abs=0.03)
        assert int(here.min()) == 1
        assert int(here.max()) == 4 - n


def test_a_thinker_learns_running_parities() -> None:
    fast = {"lr": 0.01, "batch_size": 16, "clip": 1.0, "schedule": "linear", "warmup_percent": 10}
    built = recipe("deep_thinking", 200, width=16, blocks=1, iterations=5, **fast)
    built = built.model_copy(update={"algorithm": "progressive"})
    assert accuracy(trained(built, PARITY, bits(40, 4)), PARITY, bits(40, 4)) > 0.6, "chance is a sixteenth"


WEAK = {"teacher_percent": 50, "warmup": 0.5}


def student(each: Sequence[dict[str, Any]], steps: int = 8, names: Sequence[str] = ()) -> Training:
    """A linear classifier of 12 rows under weak-to-strong learning."""
    drawn = torch.Generator().manual_seed(0)
    numbers = torch.randn(12, 3, generator=drawn, dtype=torch.float64)
    label = (numbers[:, 0] > 0).long() + (numbers[:, 1] > 0).long()
    inputs = torch.zeros(12, 0, dtype=torch.int64), numbers
    data = Data(inputs, label[None], torch.ones(12, dtype=torch.int64), torch.ones(1, 12, dtype=torch.float64))
    names = names or [f"replica {position}" for position in range(len(each))]
    own = [settings("mlp", "weak_to_strong", width=4, **(WEAK | item)) for item in each]
    stack = ReplicaStack(
        "mlp", "weak_to_strong", own, names, Sizes(3, numbers=3), "classification", data, steps, torch.float64
    )
    return Training(stack, data, steps)


def test_the_teacher_learns_its_half_and_the_student_the_other_from_the_teachers_labels() -> None:
    built = student([{}, {}])
    algorithm: Any = built.stack.algorithm
    assert algorithm.taught.sum(1).tolist() == [6, 6]
    assert not torch.equal(algorithm.taught[0], algorithm.taught[1])
    for _ in range(3):
        drawn, before = batch(built), built.stack.network
        logits = before(*drawn.inputs).detach()
        built.step()
        for position in range(2):
            own = algorithm.taught[position, drawn.rows[position]]
            expected = F.cross_entropy(logits[position][own], drawn.target[position][own]) if bool(own.any()) else 0.0
            torch.testing.assert_close(float(built.losses[position]), float(expected), rtol=0, atol=1e-10)
    built.step()
    assert built.stage == 1
    assert not algorithm.taught.gather(1, batch(built).rows).any()
    torch.testing.assert_close(algorithm.weak.sum(-1), torch.ones(2, 12, dtype=torch.float64))
    assert not any(
        torch.equal(a, b) for a, b in zip(built.stack.network.parameters(), before.parameters(), strict=True)
    ), "the student is a fresh network"


def test_a_teacher_may_be_narrower_and_its_student_is_as_wide_as_without() -> None:
    built = student([{"teacher_width": 2}] * 2)
    widths = {tuple(p.shape) for p in built.stack.network.parameters()}
    assert (2, 2, 3) in widths
    for _ in range(4):
        built.step()
    assert {tuple(p.shape) for p in built.stack.network.parameters()} == {
        tuple(p.shape) for p in student([{}] * 2).stack.network.parameters()
    }


@pytest.mark.parametrize("steps", [2, 6])
def test_training_with_a_narrower_teacher_goes_on_from_a_checkpoint_of_either_stage(tmp_path: Any, steps: int) -> None:
    full, first, second = (student([{"teacher_width": 2, "candidates": 4}] * 2) for _ in range(3))
    full.run()

    class Killed(Exception):
        pass

    def watch(training: Training) -> None:
        if training.total == steps:
            save_checkpoint(training, tmp_path / "checkpoint.npz", "it")
            raise Killed

    with pytest.raises(Killed):
        first.run(watch)
    assert resume_training(second, tmp_path / "checkpoint.npz", "it")
    second.run()
    for item, other in zip(full.outcome.candidates, second.outcome.candidates, strict=True):
        check_alike(alone(item[1].network, 0), alone(other[1].network, 0), 0.0)
    for position in range(2):
        result, expected = (alone(x.outcome.ended[0].network, position) for x in (second, full))
        check_alike(result, expected, 0.0)
