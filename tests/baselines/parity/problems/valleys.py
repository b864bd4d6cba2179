"""Where SWAD begins and ends to average, over made-up validation losses; the weights of look i are the number i."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from farshift.baselines.algorithms.swad import LossValley
from torch import Tensor

from .. import toy

LOOKS = 30


def losses() -> Tensor:
    """Of 8 trainings at 30 looks, (8, LOOKS): valleys, some of which end before training does."""
    looks, middle = torch.arange(LOOKS, dtype=torch.float64), torch.arange(8, 24, 2, dtype=torch.float64)
    return 1 + 0.06 * (looks - middle[:, None]).abs() + 0.1 * toy.wave((8, LOOKS), 0.7)


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """For each training the look at which averaging begins, the level, the look at which it ends, and where it is
    asked for the `means`."""
    rows = losses()
    result = LossValley([torch.zeros(len(rows), 1).double()], settings["converge"], settings["tolerance"], rows[:, 0])
    for position, loss in enumerate(rows.unbind(1), 1):
        result.look(
            [torch.full((len(rows), 1), float(position)).double()],
            loss,
            torch.tensor(settings["ratio"], dtype=torch.float64),
        )
    output: dict[str, Any] = {name: getattr(result, name).double().tolist() for name in ("start", "level", "end")}
    if settings["converge"] == settings["tolerance"]:
        output["means"] = result.mean.values[0][:, 0].tolist()
    return output
