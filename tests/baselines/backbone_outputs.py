"""What the released code of pretrained networks returns, and what ours does: for seeded tensors, and for released ones.

    python -m tests.baselines.backbone_outputs CLONE ..

makes `backbone_outputs.json` from clones of the released code, each a folder from which it is imported, so give only what
you have read. Nothing of it is copied here, and no test needs it.
"""

import contextlib
import io
import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from farshift.benchmarks.adapters.torch_module import load_state_dict
from farshift.core.plugins import load_module
from farshift.loaders.acquire.pretrained import PretrainedNetwork, find_pretrained_network
from farshift.loaders.batching.transform import Transform
from torch import Tensor, nn

FILE = Path(__file__).with_name("backbone_outputs.json")
LITE = ("ml-illustrated/EfficientNet-Lite-PyTorch", "dd7132c8f902994f9e0de823bcd30229bcd546b6")
CIFAR = ("akamaster/pytorch_resnet_cifar10", "d5489e8995e81e91ce6b1d69dcc98ad579b0b153")
NETWORKS = {f"efficientnet-lite{n}": LITE for n in (0, 1, 2)} | {f"cifar10-resnet{n}": CIFAR for n in (20, 32, 44, 56)}
"""Repository and commit of the released code."""


def find(name: str) -> PretrainedNetwork:
    network = find_pretrained_network(name)
    assert network is not None
    return network


def build(name: str) -> Any:
    """Our network."""
    network = find(name)
    return load_module("baselines/backbones", network.architecture, "architecture").build(**network.options)


def seeded(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Tensors of these shapes, with activations of the size that trained ones give."""
    state = {}
    for number, name in enumerate(sorted(shapes)):
        shape, kind = shapes[name], name.rpartition(".")[2]
        values = 2 * np.random.default_rng(number).random(shape) - 1
        if kind == "num_batches_tracked":
            values = np.zeros(shape)
        elif kind == "running_var" or (len(shape) == 1 and kind == "weight"):
            values = 1 + values / 2
        elif len(shape) > 1:
            values *= (6 / np.prod(shape[1:])) ** 0.5
        state[name] = torch.from_numpy(np.array(values, np.float32))
    return state


def images(name: str) -> Tensor:
    """Two normalised images."""
    side = Transform(find(name).preprocessing).size[0]
    pixels = np.random.default_rng(0).random((2, 3, side, side))
    return torch.from_numpy((2 * pixels - 1).astype(np.float32))


@torch.no_grad()
def outputs(module: nn.Module, name: str) -> list[list[float]]:
    """The first twenty logits of each image."""
    logits: list[list[float]] = module.eval()(images(name))[:, :20].tolist()
    return logits


def read_released(name: str, path: Path) -> dict[str, Any]:
    """The tensors of released weights by their names in the released code."""
    state: dict[str, Any] = load_state_dict(path, find(name).files[0].name)
    return {key.removeprefix("module."): value for key, value in state.get("state_dict", state).items()}


def _build_released(name: str) -> nn.Module:
    if name.startswith("cifar10"):
        module: nn.Module = getattr(import_module("resnet"), name.removeprefix("cifar10-"))()
        return module
    network: nn.Module = import_module("efficientnet_lite_pytorch").EfficientNet.from_name(name)
    return network


def main(*clones: str) -> None:
    sys.path[:0] = clones
    record: dict[str, Any] = {}
    for name, (repository, commit) in NETWORKS.items():
        with contextlib.redirect_stdout(io.StringIO()):
            theirs = _build_released(name)
            record[name] = {"repository": repository, "commit": commit}
            ours, (path,) = build(name), find(name).fetch().values()
            values = seeded({key: tuple(value.shape) for key, value in ours.state_dict().items()})
            renamed = {key: values[ours.rename(key)] for key in theirs.state_dict()}
            for which, state in {"seeded": renamed, "released": read_released(name, path)}.items():
                theirs.load_state_dict(state)
                record[name][which] = outputs(theirs, name)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in record.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
