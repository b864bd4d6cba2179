"""PEGO (Hu et al., ECCV 2024): the orthogonal regulariser of its `update`, on one block of a Transformer."""

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .. import toy
from ..make import Made
from ..plain import on_cpu, taken
from ..problems.values import RANK, SIDE, updates
from ..problems.values import weights_overlapping as weights
from ..reference import Numbers

REPOSITORY = "JudgingH/PEGO"
COMMIT = "fb8700b4b92b0db168e1fb56b54d1631026c4f11"
GROUPS, STRENGTH = 3, 0.2


def attention() -> Any:
    """Queries and values with their updates, and keys without."""
    queries, values = weights()
    joined = torch.cat([queries, torch.zeros(SIDE, SIDE), values])
    built = SimpleNamespace(qkv=SimpleNamespace(weight=joined, in_features=SIDE))
    for name, (down, up) in zip("qv", updates(GROUPS), strict=True):
        for letter, parts in (("a", down.split(RANK)), ("b", up.split(RANK, dim=1))):
            layers = [SimpleNamespace(weight=nn.Parameter(part.clone())) for part in parts]
            setattr(built, f"linear_{letter}_{name}", layers)
    return built


def gradients(layers: list[Any], axis: int) -> list[float]:
    return toy.flat([torch.cat([layer.weight.grad for layer in layers], dim=axis)])


def orthogonal() -> Numbers:
    """Its features are constant, so that the updates have no other gradient."""
    with on_cpu():
        given: dict[str, Any] = {"torch": torch, "F": F, "Algorithm": object, "convert_weights": lambda network: None}
        kind = taken("domainbed/algorithms/algorithms.py", "PEGO", **given)["PEGO"]
        block = attention()
        transformer = SimpleNamespace(resblocks=[SimpleNamespace(attn=SimpleNamespace(qkv=block))])
        network = SimpleNamespace(lora_vit=SimpleNamespace(transformer=transformer))
        built = SimpleNamespace(
            featurizer=Features(network), classifier=nn.Linear(toy.INPUTS, toy.CLASSES), network=None
        )
        built.ld, built.lora_nums, built.convert_models_to_fp32 = STRENGTH, GROUPS, lambda: None
        built.optimizer = SimpleNamespace(zero_grad=lambda: None, step=lambda: None)
        result = [kind.update(built, [toy.inputs()], [toy.labels()])["loss_o"]]
        for name in "qv":
            for letter, axis in (("a", 0), ("b", 1)):
                result += gradients(getattr(block, f"linear_{letter}_{name}"), axis)
    return {"overlap": result}


class Features:
    """Rows as they are, of a network that is looked into."""

    def __init__(self, network: Any) -> None:
        self.network = network

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x


MADE = {
    "pego": Made(
        orthogonal,
        "domainbed/algorithms/algorithms.py: PEGO",
        {"groups": GROUPS, "orthogonality": STRENGTH},
        "overlapping",
        remark="the regulariser and its gradient; the rest is cross-entropy",
    )
}
