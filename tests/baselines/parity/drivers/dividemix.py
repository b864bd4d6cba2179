"""DivideMix (Li et al., ICLR 2020): epochs of one batch through its `train`, for one network and then for the other."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import draws, toy
from ..make import Made
from ..plain import descent, network, on_cpu, replaced, taken
from ..problems.steps import clean
from ..reference import Numbers

REPOSITORY = "LiJunnan1992/DivideMix"
COMMIT = "d9d3058fa69a952463b896f84730378cdee6ec39"
ALPHA, WEIGHT, THRESHOLD, TEMPERATURE, RAMP = 0.8, 25.0, 0.4, 0.6, toy.STEPS
"""RAMP: steps in which the unlabelled rows' weight rises; 16 epochs there."""


class Loader(list[Any]):
    """Batches, and of how many rows they are."""

    def __init__(self, batch: Any) -> None:
        super().__init__([batch])
        self.dataset = batch[0]

    def __iter__(self) -> Iterator[Any]:
        return Batches(self[:])


class Batches:
    """An iterator of the second version of Python."""

    def __init__(self, batches: list[Any]) -> None:
        self.turns = iter(batches)

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        return next(self.turns)

    next = __next__


def partners(order: Tensor, labelled: Tensor) -> Tensor:
    """Whom its rows are mixed with, where each row is there twice: labelled ones first, then the others."""
    own = [row for part in (labelled, ~labelled) for row in [*part.nonzero()[:, 0].tolist()] * 2]
    first = {row: own.index(row) for row in own}
    return torch.tensor([first[int(order[row])] for row in own])


def mixed() -> Numbers:
    """Both views of a row are the row; the other network is given as it was before the step."""
    args = SimpleNamespace(num_class=toy.CLASSES, T=TEMPERATURE, alpha=ALPHA, lambda_u=WEIGHT, batch_size=100)
    vars(args).update(dataset="", r=0.0, noise_mode="", num_epochs=1)
    given: dict[str, Any] = {
        "torch": torch,
        "np": np,
        "F": F,
        "args": args,
        "sys": SimpleNamespace(stdout=io.StringIO()),
    }
    with on_cpu(), replaced({(torch, "FloatTensor"): torch.DoubleTensor}):
        code = taken("Train_cifar.py", "train", "SemiLoss", "linear_rampup", **given)
        code.update(criterion=code["SemiLoss"](), warm_up=0)
        pair: list[nn.Module] = [network(), network(4)]
        optimisers = [descent(item.parameters()) for item in pair]
        x, y = toy.inputs(), toy.labels()
        result = []
        for step in range(toy.STEPS):
            before = copy.deepcopy(pair[0])
            for which, other in enumerate((pair[1], before)):
                w = clean()[1 - which]
                labelled = w > THRESHOLD
                rows, rest = x[labelled], x[~labelled]
                order = partners(draws.order(f"pairs of {which}", step, len(y)), labelled)
                drawn = {
                    (np.random, "beta"): draws.dealt(draws.shares(f"shares of {which}", step, ALPHA)),
                    (torch, "randperm"): draws.dealt([order]),
                }
                loaders = Loader((rows, rows, y[labelled], w[labelled])), Loader((rest, rest))
                with replaced(drawn):
                    code["train"](16 * step / RAMP, pair[which], other, optimisers[which], *loaders)
            result.append([value for item in pair for value in toy.flat(item.parameters())])
    return {"parameters": result}


MADE = {
    "dividemix": Made(
        mixed,
        "Train_cifar.py: train, SemiLoss, linear_rampup",
        {
            "warm_percent": 0,
            "ramp_percent": 100.0 * RAMP / toy.STEPS,
            "threshold": THRESHOLD,
            "temperature": TEMPERATURE,
            "alpha": ALPHA,
            "unlabelled": WEIGHT,
        },
        "divided",
        remark="posteriors of clean labels are given; both views of a row are the row; drawn as ours",
    )
}
