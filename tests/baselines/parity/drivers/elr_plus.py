"""ELR+ (Liu et al., NeurIPS 2020): epochs of one batch through its trainer, for one network and then for the other."""

import copy
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import nn

from .. import draws, toy
from ..make import Made
from ..plain import descent, network, on_cpu, replaced
from ..reference import Numbers

REPOSITORY = "shengliu66/ELR"
COMMIT = "934af53434a336b6db80d05d7649d23216e8ca6d"
FOLDER = "ELR_plus"

CONFIG = {
    "num_classes": toy.CLASSES,
    "mixup_alpha": 0.8,
    "coef_step": 2,
    "ema_update": True,
    "ema_alpha": 0.9,
    "ema_step": 3,
    "train_loss": {"args": {"lambda": 2.0}},
}


def averaged() -> Numbers:
    """The second network is given the first one's average as it was before the step."""
    stubs: dict[str, Any] = {
        "parse_config": {"ConfigParser": None},
        "torchvision": {},
        "torchvision__utils": {"make_grid": None},
        "base": {"BaseTrainer": object},
    }
    with on_cpu(**stubs):
        from model.loss import elr_plus_loss
        from trainer.trainer import Trainer

        pair, slow = [network(), network(4)], [network(8), network(12)]
        rows = toy.ENVIRONMENTS * toy.ROWS
        losses = [elr_plus_loss(rows, CONFIG, "cpu", toy.CLASSES, 0.6) for _ in pair]
        optimisers = [descent(item.parameters()) for item in pair]
        loader: Any = Loader([(toy.inputs(), toy.labels(), torch.arange(rows), None)])
        built = Trainer.__new__(Trainer)
        built.config, built.metrics, built.len_epoch, built.log_step = CONFIG, [], 1, 2
        built.data_loader1, built.writer, built.train_loss_list = loader, MagicMock(), []
        result: dict[str, Any] = {"losses": [], "parameters": []}
        for step in range(toy.STEPS):
            built.global_step, loss, before = step, 0.0, copy.deepcopy(slow[0])
            for which, other in enumerate((slow[1], before)):
                drawn = {
                    (np.random, "beta"): draws.dealt(draws.shares(f"shares of {which}", step, 0.8)),
                    (torch, "randperm"): draws.dealt([draws.order(f"pairs of {which}", step, rows)]),
                }
                schedule = SimpleNamespace(get_lr=lambda: None, step=lambda: None)
                given = pair[which], slow[which], other, loader, losses[which], optimisers[which], schedule
                with replaced(drawn):
                    loss += built._train_epoch(1, *given)["loss"]
            result["losses"].append(loss)
            result["parameters"].append(weights(pair))
    return result | {"averages": weights(slow)}


def weights(networks: list[nn.Sequential]) -> list[float]:
    return [value for item in networks for value in toy.flat(item.parameters())]


class Loader(list[Any]):
    """Batches, and what its trainer asks of where they come from."""

    dataset = range(toy.ENVIRONMENTS * toy.ROWS)
    batch_size = len(dataset)


MADE = {
    "elr_plus": Made(
        averaged,
        "ELR_plus/trainer/trainer.py: Trainer, ELR_plus/model/loss.py: elr_plus_loss",
        {
            "strength": 2.0,
            "keep": 0.6,
            "alpha": 0.8,
            "slowness": 0.9,
            "rise_percent": 100.0,
            "ramp_percent": 200 / 3,
        },
        "two_averages",
        remark="one batch an epoch; drawn as ours",
    )
}
