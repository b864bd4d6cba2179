"""What steps taken as graphs are made of: a clock that is read, products in bfloat16, the products of one replica."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.layers.linear import Linear
from farshift.baselines.replicas.rng import keys
from farshift.baselines.replicas.stacked import stacked
from farshift.baselines.training.algorithm import Clock
from farshift.baselines.training.graphs.symbolic_clock import Condition, TracedClock, holds
from farshift.baselines.training.precision import Precision
from torch import Tensor

from .plain_loops import case, settings, stack

REPOSITORY = Path(__file__).parents[2]


def clock(step: int, total: int = 0) -> Clock:
    return Clock(step, 100, 0, total or step, keys(["a", "b"]))


def read(now: Clock) -> tuple[Any, list[Condition]]:
    taken: list[Condition] = []
    return TracedClock(now, torch.tensor(now.step), torch.tensor(now.total), taken), taken


def test_what_is_compared_with_the_step_holds_for_the_steps_with_the_same_answers() -> None:
    now, taken = read(clock(30))
    assert now.step >= 20
    assert now.step + 1 != 50
    assert [step for step in range(60) if holds(taken, clock(step))] == [*range(20, 49), *range(50, 60)]


def test_what_is_computed_with_the_step_and_tensors_is_told_to_the_graph() -> None:
    now, taken = read(clock(30))
    share = now.step / now.steps
    assert isinstance(share, Tensor)
    assert share.item() == 0.3
    assert (now.step >= torch.tensor([10.0, 40.0])).tolist() == [True, False]
    assert not taken


def test_a_traced_clock_draws_what_the_plain_one_draws() -> None:
    now, _ = read(clock(3, total=70))
    assert torch.equal(now.draw("mask"), clock(3, total=70).draw("mask"))


def test_a_number_of_the_clock_cannot_slip_into_a_graph_unseen() -> None:
    now, _ = read(clock(3))
    for use in (lambda: range(now.step), lambda: {now.step: 1}, lambda: [0, 1, 2, 3][now.step], lambda: 2 / now.step):
        with pytest.raises(TypeError):
            use()


@pytest.mark.parametrize("network", ["mlp", "cnn", "resnet", "transformer", "decoder_transformer"])
def test_in_bfloat16_weights_and_gradients_stay_in_single_precision_and_come_near(network: str) -> None:
    data, sizes = case(network, 16)
    made = stack(network, [settings(network)] * 2, data, sizes, 1, torch.float32).network
    inputs = tuple(x.float() if x.is_floating_point() else x for x in data.inputs)
    found: list[list[Tensor]] = []
    for dtype in (torch.float32, torch.bfloat16):
        with Precision(dtype, "cpu").applied():
            logits = made(*(x.expand(2, *x.shape) for x in inputs))
        assert logits.dtype == dtype
        found.append([*torch.autograd.grad(logits.float().square().mean(), [*made.parameters()])])
    exact, rough = (torch.cat([x.flatten() for x in gradients]) for gradients in found)
    assert rough.dtype == torch.float32
    assert 0 < (rough - exact).norm() < 0.1 * exact.norm()


@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(4, 10, 8), (7, 3, 5), (49, 14, 32), (64, 160, 10)])
def test_one_replica_alone_multiplies_as_it_does_among_others_to_the_bit(rows: int, inputs: int, outputs: int) -> None:
    torch.manual_seed(0)
    layers = [Linear(inputs, outputs) for _ in range(3)]
    x, slope = torch.randn(3, rows, inputs), torch.randn(3, rows, outputs)
    alone = []
    for place, layer in enumerate(layers):
        y = layer(x[place : place + 1])
        alone.append([y, *torch.autograd.grad(y, [*layer.parameters()], slope[place : place + 1])])
    together: Any = stacked(layers)
    y = together(x)
    for ours, each in zip(
        [y, *torch.autograd.grad(y, [*together.parameters()], slope)], zip(*alone, strict=True), strict=True
    ):
        assert torch.equal(ours, torch.cat(each))


@pytest.mark.slow
def test_the_script_for_a_gpu_runs_in_small(tmp_path: Path) -> None:
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        image = np.arange(64 * 3073).reshape(64, 3073) % 251
        image[:, 0] = np.arange(64) % 10
        image.astype(np.uint8).tofile(tmp_path / f"{name}.bin")
    environment = os.environ | {"OUT": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "tests/bench/training_gpu.py", "--tiny", "--cifar", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: row for row in json.loads((tmp_path / "training_gpu.json").read_text())["rows"]}
    assert rows["phase diagram"]["runs"] == 4
    assert rows["all domain algorithms"]["recipes"] >= 34
    assert rows["CIFAR-10 to 94 %"]["steps"] == 20
    assert rows["Part.on_device"]["rows_a_second"] > 0
