"""CoTTA (Wang et al., CVPR 2022): the toy's pictures through the `CoTTA` of cifar/. Its views and its draws are replaced
by ours of the same batch."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from unittest.mock import MagicMock, patch

import torch
from farshift.baselines.augmentations import domainbed
from farshift.baselines.replicas.rng import derive_stream, draw_uniform
from farshift.baselines.training.augmentation import augment_flat_rows
from torch import Tensor

from .. import pictures
from ..make import Made
from ..problems.predictions import make_adapting as made
from ..reference import Numbers

REPOSITORY = "qinenergy/cotta"
COMMIT = "c212a204b32be4005092e4323105a24a29ad2952"
FOLDER = "cifar"
VIEWS = 32
SURE = 0.611
"""Of the third batch alone, the trained network is surer: the teacher sees it as it is, the others by views."""


def views(stack: Any) -> Iterator[Callable[[Tensor], Tensor]]:
    """The view of each call, 32 of each batch."""
    for requested in range(3):
        for view in range(VIEWS):

            def augment(x: Tensor, view: int = view, asked: int = requested) -> Tensor:
                rows = torch.arange(len(x))[None]
                given = stack.keys, rows, asked, stack.hyperparameters, pictures.SIZES
                return augment_flat_rows(domainbed, f"view {view}", x.flatten(1)[None], *given).view_as(x)

            yield augment


def drawn(stack: Any, count: int) -> Iterator[Callable[[Any], Tensor]]:
    """What each parameter is restored by, of `count`."""
    for requested in range(3):
        for position in range(count):
            keys = derive_stream(stack.keys, f"restore {position}", requested)
            yield lambda shape, keys=keys: draw_uniform(keys, shape, torch.float64)[0]


def adapted(confident: float, settings: dict[str, Any]) -> Callable[[], Numbers]:
    def call() -> Numbers:
        absent = {name: MagicMock() for name in ("torchvision", "torchvision.transforms", "my_transforms")}
        with patch.dict(sys.modules, absent):
            cotta = import_module("cotta")
        stack = made("cotta", dict(settings))
        network = cotta.configure_model(pictures.plain(3.0))
        parameters, _ = cotta.collect_params(network)
        seen, random = views(stack), drawn(stack, len(parameters))
        transform = lambda x: next(seen)(x)  # noqa: E731
        with (
            patch.object(cotta, "get_tta_transforms", lambda: transform),
            patch.object(torch, "rand", lambda shape: next(random)(shape)),
            patch.object(Tensor, "cuda", lambda self: self),
        ):
            optimiser = torch.optim.Adam(parameters, settings["adaptive_lr"])
            model = cotta.CoTTA(network, optimiser, mt_alpha=0.9, rst_m=0.2, ap=confident)
            return pictures.recorded(model, network, lambda model, batch: model(batch).detach())

    return call


def setting(confident: float) -> dict[str, Any]:
    own = {"adaptive_lr": 0.02, "slowness": 0.9, "restore": 0.2, "views": VIEWS}
    return {**own, "confident": confident, "sharpness": 3.0}


REMARK = "Views are drawn by our augmentation domainbed in both."
MADE = {
    "cotta": Made(adapted(SURE, setting(SURE)), "cifar/cotta.py: CoTTA", setting(SURE), "adapting", remark=REMARK),
}
