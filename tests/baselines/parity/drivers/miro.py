"""MIRO's released code: three updates of its class, on a network whose one compared state is the toy's hidden layer."""

import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..reference import Numbers

REPOSITORY = "kakaobrain/miro"
COMMIT = "52384553e9745b1dbd974aaf8db3908e5757f245"
CODE = "domainbed/algorithms/miro.py"


class Hidden(nn.Module):
    """The toy's hidden layer, which also says its state."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()
        self.layer, self.n_outputs = nn.Linear(toy.INPUTS, toy.WIDTH), toy.WIDTH

    def forward(self, x: Tensor, ret_feats: bool = False) -> Any:
        z = torch.relu(self.layer(x))
        return (z, [z[:, None]]) if ret_feats else z


class Basis(nn.Module):
    """In place of what its class inherits."""

    def __init__(self, input_shape: Any, num_classes: int, num_domains: int, hparams: Any) -> None:
        super().__init__()
        self.input_shape, self.hparams = input_shape, hparams


def descent(_: str, parameters: Any, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr, toy.MOMENTUM)


class Hparams(dict[str, Any]):
    """Its settings, by name and by attribute."""

    __getattr__ = dict.__getitem__


def module() -> ModuleType:
    """Its file alone; what it imports is given."""
    parts: Mapping[str, Mapping[str, Any]] = {
        "domainbed": {},
        "domainbed.optimizers": {"get_optimizer": descent},  # codespell:ignore optimizers
        "domainbed.networks": {},
        "domainbed.networks.ur_networks": {"URFeaturizer": Hidden},
        "domainbed.lib": {"misc": ModuleType("misc")},
        "domainbed.algorithms": {"Algorithm": Basis},
    }
    given = {}
    for name, content in parts.items():
        given[name] = ModuleType(name)
        vars(given[name]).update(content)
    given["domainbed.lib"].misc.zip_strict = lambda *each: zip(*each, strict=True)
    [path] = [result for entry in sys.path if (result := Path(entry) / CODE).is_file()]
    spec = spec_from_file_location("released", path)
    assert spec is not None
    assert spec.loader is not None
    result = module_from_spec(spec)
    with patch.dict(sys.modules, given):
        spec.loader.exec_module(result)
    return result


def miro() -> Numbers:
    """The states have one token, so that their channels are the last of three axes."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        settings = Hparams(lr=toy.RATE, lr_mult=10.0, ld=0.6, weight_decay=0.0, feat_layers=None)
        settings["optimizer"] = "sgd"  # codespell:ignore optimizer
        built = module().MIRO((toy.INPUTS,), toy.CLASSES, toy.ENVIRONMENTS, settings)
        weights = [*built.network.parameters()]
        toy.fill(weights)
        toy.fill(built.pre_featurizer.parameters())
        losses, parameters = [], []
        for _ in range(toy.STEPS):
            losses.append(built.update([toy.inputs()], [toy.labels()])["loss"])
            parameters.append(toy.flat(weights))
    finally:
        torch.set_default_dtype(before)
    return {"losses": losses, "parameters": parameters}


MADE = {
    "miro": Made(
        miro,
        f"{CODE}: MIRO",
        {"penalty": 0.6, "pretrain_percent": 0},
        "held_to_start",
        remark="one state is compared, that of the features",
    )
}
