"""MCD's released code: three steps of its solver, with the toy's layers and descent in place of its own."""

import sys
import warnings
from contextlib import ExitStack
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..problems.steps import shifted_inputs as shifted
from ..reference import Numbers

REPOSITORY = "mil-tokyo/MCD_DA"
COMMIT = "af10217c5c5451dcd8bc3e975a7d067c285cc029"
FOLDER = "classification"
STEPS = 3


def solver(module: ModuleType) -> Any:
    """Its solver without its data and networks."""
    built = module.Solver.__new__(module.Solver)
    built.G = nn.Sequential(nn.Linear(toy.INPUTS, toy.WIDTH), nn.ReLU()).double()
    built.C1, built.C2 = (nn.Linear(toy.WIDTH, toy.CLASSES).double() for _ in range(2))
    built.batch_size, built.num_k, built.interval = len(toy.labels()), STEPS, 10**6
    for name, part in (("opt_g", built.G), ("opt_c1", built.C1), ("opt_c2", built.C2)):
        setattr(built, name, torch.optim.SGD(part.parameters(), toy.RATE, toy.MOMENTUM))
    built.datasets = [{"S": toy.inputs(), "S_label": toy.labels(), "T": shifted()}]
    return built


def mcd() -> Numbers:
    """Its first batch, which it would print in a way of old versions of torch, is called the second."""
    absent = {name: ModuleType(name) for name in ("model", "model.build_gen", "datasets", "datasets.dataset_read")}
    absent["datasets.dataset_read"].dataset_read = None  # type: ignore[attr-defined]
    with patch.dict(sys.modules, absent):
        module = import_module("solver")
    built = solver(module)
    weights = [p for part in (built.G, built.C1, built.C2) for p in part.parameters()]
    toy.fill(weights)
    losses, parameters = [], []
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        stack.enter_context(patch.object(Tensor, "cuda", lambda self: self))
        stack.enter_context(patch.object(module, "xrange", range, create=True))
        stack.enter_context(patch.object(module, "enumerate", lambda x: enumerate(x, 1), create=True))
        for _ in range(toy.STEPS):
            z = built.G(toy.inputs())
            losses.append(sum(nn.functional.cross_entropy(c(z), toy.labels()) for c in (built.C1, built.C2)).item())
            built.train(0)
            parameters.append(toy.flat(weights))
    return {"losses": losses, "parameters": parameters}


MADE = {
    "mcd": Made(mcd, "classification/solver.py: Solver.train", {"generator_steps": STEPS}, "adapted"),
}
