"""Pictures that are streamed to the device train the same in two processes that share each step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from farshift.baselines.encoding.encoding import make_encoding
from farshift.baselines.encoding.pixel_rows import PixelRows
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Task
from farshift.core.world import SINGLE_PROCESS, World

from .test_parallel import NAMES, by_processes, weights
from .toys import recipe

TASK = Task("classification", ("image",), "kind", classes=3)


def trained(together: World) -> np.ndarray:
    built = recipe("mlp", 6, batch_size=9, lr=0.01, width=8)
    pixels = np.random.default_rng(0).integers(0, 256, (40, 4, 4, 3)).astype(np.uint8)
    columns = {"image": pixels, "kind": np.arange(40) % 3}
    settings = [resolve_settings(built, "toy/toy", {"lr": rate}) for rate in (0.01, 0.003)]
    coding = make_encoding(TASK, columns, settings[0])
    data = Data.of(coding.encode(columns), torch.ones(40, dtype=torch.float64))
    assert isinstance(data.inputs[1], PixelRows)
    stack = ReplicaStack("mlp", "erm", settings, NAMES, coding.sizes, TASK.type, data, 6)
    return weights(Training(stack, data, 6, together))


def test_two_processes_take_the_steps_of_one_on_streamed_pictures(tmp_path: Path) -> None:
    alone = trained(SINGLE_PROCESS)
    for result in by_processes(2, tmp_path, trained):
        np.testing.assert_allclose(result, alone, rtol=1e-4, atol=1e-6)
