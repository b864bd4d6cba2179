"""Classes of DomainBed whose steps draw at random or whose weights are laid out otherwise: what they draw is ours."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from farshift.baselines.algorithms.selfreg import draw_partners
from farshift.baselines.replicas.rng import derive_stream, draw_beta, make_keys
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..reference import Numbers
from .domainbed import COMMIT as COMMIT
from .domainbed import REPOSITORY as REPOSITORY
from .domainbed import environments, hparams, library

FILE = "domainbed/algorithms.py"


def made(name: str, **given: Any) -> Any:
    """One of its classes, on the toy."""
    with library() as algorithms:
        return getattr(algorithms, name)((toy.INPUTS,), toy.CLASSES, toy.ENVIRONMENTS, hparams(given))


def mtl() -> Numbers:
    """Without the noise that it writes over an environment's mean; the mean of its risks, where it has their sum."""
    result = made("MTL", mtl_ema=0.4, lr=toy.RATE / toy.ENVIRONMENTS)
    weights = [*result.featurizer.parameters(), *result.classifier.parameters()]
    toy.fill(weights)
    losses, parameters = [], []
    with patch.object(torch.Tensor, "normal_", lambda self: self):
        for _ in range(toy.STEPS):
            losses.append(result.update(environments())["loss"] / toy.ENVIRONMENTS)
            parameters.append(toy.flat(weights))
    return {"losses": losses, "parameters": parameters}


@contextmanager
def within_classes(step: int) -> Iterator[None]:
    """Its draws of a step: two orders of each class's rows, which it has sorted by class, and the share."""
    key = make_keys(["parity"])
    y = toy.labels()
    in_order = y.sort().indices
    position = in_order.argsort()
    pairs = [draw_partners(derive_stream(key, name, step), y[None])[0] for name in ("first", "second")]
    dealt: list[Tensor] = []
    for label in range(toy.CLASSES):
        rows = in_order[y[in_order] == label]
        dealt += [position[pair[rows]] - position[rows[0]] for pair in pairs]
    share = draw_beta(derive_stream(key, "share", step), (1,), 0.5).item()
    turns = iter(dealt)
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch, "randperm", lambda count: next(turns)))
        stack.enter_context(patch.object(np.random, "beta", lambda *_: share))
        yield


def selfreg() -> Numbers:
    """Its projection is not among what its optimiser moves."""
    result = made("SelfReg")
    layers = [part for part in result.cdpl if isinstance(part, nn.Linear)]
    norms = [part for part in result.cdpl if isinstance(part, nn.BatchNorm1d)]
    weights = [*result.network.parameters(), *(p for part in (*layers, *norms) for p in part.parameters())]
    toy.fill(weights)
    losses, parameters = [], []
    for step in range(toy.STEPS):
        with within_classes(step):
            losses.append(result.update(environments())["loss"])
        parameters.append(toy.flat(weights))
    return {"losses": losses, "parameters": parameters}


def erm_plus_plus() -> Numbers:
    """Its head is trained alone while its count of steps is not above `linear_steps`: for one step more."""
    result = made("ERMPlusPlus", lars=False, linear_steps=0, linear_lr=2 * toy.RATE, freeze_bn=True)
    result.sma_start_iter = 2
    toy.fill(result.network.parameters())
    losses, parameters, means = [], [], []
    for _ in range(toy.STEPS):
        losses.append(result.update(environments())["loss"])
        parameters.append(toy.flat(result.network.parameters()))
        means.append(toy.flat(result.network_sma.parameters()))
    return {"losses": losses, "parameters": parameters, "means": means}


MADE = {
    "mtl": Made(mtl, f"{FILE}: MTL", {"ema": 0.4}, remark="without the noise that it writes over the means"),
    "selfreg": Made(selfreg, f"{FILE}: SelfReg", {"train_projection": False}, remark="orders and shares drawn as ours"),
    "erm_plus_plus": Made(
        erm_plus_plus,
        f"{FILE}: ERMPlusPlus",
        {"warm_percent": 34, "start_percent": 34, "looks": 1, "lr_head": 2 * toy.RATE},
        "averaged",
        remark="without its second run; its means begin with the weights of the step before they do",
    ),
}
