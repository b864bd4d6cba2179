"""Agree to disagree (Pagliardini et al., ICLR 2023): the loop of `main.py`."""

import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.nn.functional as F

from .. import draws, toy
from ..make import Made
from ..plain import descent, network, on_cpu, taken
from ..reference import Numbers

REPOSITORY = "mpagli/Agree-to-Disagree"
COMMIT = "d8859164025421e137dca8226ef3b10859bc276c"

ALPHA, MEMBERS = 0.6, 3


def in_turn() -> Numbers:
    """The loss and all weights after each of its steps."""
    members = [network(4 * position) for position in range(MEMBERS)]
    losses: list[float] = []
    parameters: list[list[float]] = []

    class Noted(torch.optim.SGD):
        def step(self, *_: Any, **__: Any) -> None:  # type: ignore[override]
            super().step()
            parameters.append(toy.flat(p for member in members for p in member.parameters()))

    def optimiser(some: Any) -> Noted:
        result = descent(some)
        return Noted(result.param_groups)

    def noted(found: torch.Tensor) -> bool:
        losses.append(float(found))
        return False

    batch = [(toy.inputs(), toy.labels())]
    scores = {"get_acc": lambda *_: 0.0, "get_acc_ensemble": lambda *_: 0.0}
    samplers = {"dl_to_sampler": lambda rows: lambda: rows}
    quiet = {"print": lambda *_: None}
    with on_cpu(), TemporaryDirectory() as folder:
        watched = type("Watched", (), {"isnan": staticmethod(noted)})
        result = taken("src/main.py", "train", torch=torch, F=F, copy=copy, math=watched, **scores, **samplers, **quiet)
        result["train"](
            draws.dealt(members),
            optimiser,
            MEMBERS,
            batch,
            batch,
            batch,
            [toy.inputs(2.0)],
            max_epoch=toy.STEPS,
            eval_freq=1,
            ckpt_path=Path(folder) / "kept",
            alpha=ALPHA,
        )
    return {"losses": losses, "parameters": parameters}


MADE = {
    "d_bat": Made(
        in_turn,
        "src/main.py: train",
        {"alpha": ALPHA, "members": MEMBERS, "weight_decay": 0.0},
        "shifted",
    )
}
