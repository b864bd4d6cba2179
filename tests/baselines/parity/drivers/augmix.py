"""AugMix (Hendrycks et al., ICLR 2020): epochs of one batch through its `train`, with two views by formulas."""

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F

from .. import toy
from ..make import Made
from ..plain import descent, network, on_cpu, taken
from ..problems.predictions import view
from ..reference import Numbers

REPOSITORY = "google-research/augmix"
COMMIT = "9b9824c7c19bf7e72df2d085d97b99b3bfb00ba4"


def consistent() -> Numbers:
    """Its running loss after one step is a tenth of it."""
    with on_cpu():
        args = SimpleNamespace(no_jsd=False, print_freq=2)
        silent = SimpleNamespace(step=lambda: None)
        given: dict[str, Any] = {"torch": torch, "F": F, "args": args, "print": lambda *_: None}
        train = taken("cifar.py", "train", **given)["train"]
        built, x = network(), toy.inputs()
        optimiser = descent(built.parameters())
        result: dict[str, Any] = {"losses": [], "parameters": []}
        for _ in range(toy.STEPS):
            views = [x, view("first", x), view("second", x)]
            result["losses"].append(10 * train(built, [(views, toy.labels())], optimiser, silent))
            result["parameters"].append(toy.flat(built.parameters()))
    return result


MADE = {"augmix": Made(consistent, "cifar.py: train", {"consistency": 12.0}, "viewed")}
