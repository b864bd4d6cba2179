"""SHOT (Liang, Hu and Feng, ICML 2020): the toy's shifted rows through `train_target`, its networks replaced by the toy's
hidden layer, no bottleneck, and the toy's head, its rates by constant ones; packages of pictures are left out."""

import sys
from argparse import Namespace
from importlib import import_module
from io import StringIO
from typing import Any
from unittest.mock import MagicMock, patch

import torch
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..reference import Numbers

REPOSITORY = "tim-learn/SHOT"
COMMIT = "f7d555a0d53b525b885e5ef2a887a267a5be3c36"
FOLDER = "object"
PSEUDO = 0.6


class Loader:
    """All shifted rows at once, with the `next` that it asks its iterators for."""

    def __init__(self) -> None:
        self.rows = toy.inputs(1.7), toy.labels(), torch.arange(toy.ENVIRONMENTS * toy.ROWS)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Any:
        turn = iter([self.rows])
        return type("Turn", (), {"next": lambda _: next(turn), "__iter__": iter, "__next__": None})()


class Head(nn.Linear):
    """In evaluation the released code asks for the head's features as float32; the toy's are in float64."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.double())


def call() -> Numbers:
    absent = {name: MagicMock() for name in ("torchvision", "network", "data_list", "tqdm")}
    with patch.dict(sys.modules, absent):
        target = import_module("image_target")
    features = nn.Sequential(nn.Linear(toy.INPUTS, toy.WIDTH), nn.ReLU()).double()
    features.in_features = toy.WIDTH  # type: ignore[assignment]
    head = Head(toy.WIDTH, toy.CLASSES).double()
    weights = [*features.parameters(), *head.parameters()]
    toy.fill(weights)
    losses, parameters = [], []

    class Descent(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            super().step()
            parameters.append(toy.flat(weights))

    backward = Tensor.backward

    def watched(self: Tensor, *given: Any, **more: Any) -> None:
        losses.append(self.item())
        backward(self, *given, **more)

    args = Namespace(
        net="res", classifier="bn", layer="wn", bottleneck=0, class_num=toy.CLASSES, output_dir_src="", lr_decay1=1.0,
        lr_decay2=1.0, lr=toy.RATE, max_epoch=toy.STEPS, interval=toy.STEPS, cls_par=PSEUDO, ent=True, gent=True,
        ent_par=1.0, epsilon=1e-5, threshold=0, distance="cosine", dset="toy", name="toy", issave=False,
        out_file=StringIO(),
    )  # fmt: skip
    cuda = {"cuda": lambda self: self, "load_state_dict": lambda *given: None}
    with (
        patch.multiple(nn.Module, **cuda),
        patch.object(Tensor, "cuda", lambda self: self),
        patch.object(Tensor, "backward", watched),
        patch.object(torch, "load"),
        patch.object(target, "data_load", lambda args: {"target": Loader(), "test": Loader()}),
        patch.object(target, "cal_acc", lambda *given: (0.0, 0.0)),
        patch.object(target, "lr_scheduler", lambda *given, **more: None),
        patch.object(target.network, "ResBase", lambda **more: features),
        patch.object(target.network, "feat_bottleneck", lambda **more: nn.Identity()),
        patch.object(target.network, "feat_classifier", lambda **more: head),
        patch.object(target.optim, "SGD", lambda groups: Descent(groups, momentum=toy.MOMENTUM)),
    ):
        target.train_target(args)
    return {"losses": losses, "parameters": parameters}


SETTINGS = {"pseudo": PSEUDO, "relabels": toy.STEPS, "adaptive_lr": toy.RATE}
MADE = {"shot": Made(call, "object/image_target.py: train_target", SETTINGS, "shot")}
