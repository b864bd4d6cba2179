"""The precision of a step's products: bfloat16, and one replica's alone and among others."""

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
from farshift.baselines.replicas.stacked import stack_networks
from farshift.baselines.training.step_computation import compute_in
from farshift.baselines.training.trainer import Training
from farshift.core.errors import ModelError
from torch import Tensor

from .plain_loops import case, settings, stack

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("network", ["mlp", "cnn", "resnet", "transformer", "decoder_transformer"])
def test_in_bfloat16_weights_and_gradients_stay_in_single_precision_and_come_near(network: str) -> None:
    data, sizes = case(network, 16)
    built = stack(network, [settings(network)] * 2, data, sizes, 1, torch.float32).network
    inputs = tuple(x.float() if x.is_floating_point() else x for x in data.inputs)
    result: list[list[Tensor]] = []
    for dtype in (torch.float32, torch.bfloat16):
        with compute_in(dtype, "cpu"):
            logits = built(*(x.expand(2, *x.shape) for x in inputs))
        assert logits.dtype == dtype
        result.append([*torch.autograd.grad(logits.float().square().mean(), [*built.parameters()])])
    exact, rough = (torch.cat([x.flatten() for x in gradients]) for gradients in result)
    assert rough.dtype == torch.float32
    assert 0 < (rough - exact).norm() < 0.1 * exact.norm()


@pytest.mark.parametrize(
    ("choice", "why"), [("float8", "use auto, float32 or bfloat16"), ("bfloat16", "it is for training on a GPU")]
)
def test_a_precision_that_there_is_not_is_refused(choice: str, why: str) -> None:
    data, sizes = case("mlp", 16)
    replicas = stack("mlp", [settings("mlp", precision=choice)], data, sizes, 1)
    with pytest.raises(ModelError, match=f"setting precision = '{choice}': {why}"):
        Training(replicas, data, 1)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(4, 10, 8), (7, 3, 5), (49, 14, 32), (64, 160, 10)])
def test_one_replica_alone_multiplies_as_it_does_among_others_to_the_bit(rows: int, inputs: int, outputs: int) -> None:
    torch.manual_seed(0)
    layers = [Linear(inputs, outputs) for _ in range(3)]
    x, slope = torch.randn(3, rows, inputs), torch.randn(3, rows, outputs)
    alone = []
    for position, layer in enumerate(layers):
        y = layer(x[position : position + 1])
        alone.append([y, *torch.autograd.grad(y, [*layer.parameters()], slope[position : position + 1])])
    together: Any = stack_networks(layers)
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
