"""The toy in torch.nn, for drivers of code that is a loss or a step and no training of its own."""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from . import toy
from .reference import Numbers


def network(first: int = 0, classes: int = toy.CLASSES) -> nn.Sequential:
    """The toy's perceptron, whose weights are filled from number `first` on."""
    built = nn.Sequential(nn.Linear(toy.INPUTS, toy.WIDTH), nn.ReLU(), nn.Linear(toy.WIDTH, classes)).double()
    toy.fill(built.parameters(), first)
    return built


def descent(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The toy's optimiser."""
    return torch.optim.SGD(parameters, toy.RATE, toy.MOMENTUM)


def descended(networks: Sequence[nn.Module], loss: Callable[[int], Tensor], steps: int = toy.STEPS) -> Numbers:
    """Steps of descent on a loss, which is asked with the number of each."""
    parameters = [parameter for network in networks for parameter in network.parameters()]
    optimiser = descent(parameters)
    losses, after = [], []
    for step in range(steps):
        result = loss(step)
        optimiser.zero_grad()
        result.backward()
        optimiser.step()
        losses.append(result.item())
        after.append(toy.flat(parameters))
    return {"losses": losses, "parameters": after}


def with_loss(loss: Callable[[Tensor, Tensor, int], Tensor]) -> Numbers:
    """Steps of the perceptron on a loss of logits (18, CLASSES), labels (18,) and the step's number."""
    built, x, y = network(), toy.inputs(), toy.labels()
    return descended([built], lambda step: loss(built(x), y, step))


@contextmanager
def replaced(attributes: Mapping[tuple[Any, str], Any]) -> Iterator[None]:
    """Inside, attributes of modules and classes are others."""
    with ExitStack() as stack:
        for (owner, name), value in attributes.items():
            stack.enter_context(patch.object(owner, name, value, create=True))
        yield


@contextmanager
def on_cpu(**modules: Mapping[str, Any]) -> Iterator[None]:
    """Inside, torch makes float64 also where float32 is asked for, what asks for a GPU stays here, and modules that are absent (a dot in a name is `__`)
    have the given attributes and no others."""
    absent = {}
    for name, attributes in modules.items():
        built = ModuleType(name.replace("__", "."))
        built.__dict__.update(attributes)
        absent[built.__name__] = built
    for name, built in absent.items():
        if "." in name:
            parent, _, own = name.rpartition(".")
            setattr(absent[parent], own, built)
    stay: dict[tuple[Any, str], Any] = {
        (Tensor, "cuda"): lambda self, *_, **__: self,
        (nn.Module, "cuda"): lambda self, *_, **__: self,
        (Tensor, "float"): Tensor.double,
        (torch.cuda, "FloatTensor"): torch.DoubleTensor,
    }
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        sys.modules.update(absent)
        with replaced(stay):
            yield
    finally:
        torch.set_default_dtype(before)
        for name in absent:
            del sys.modules[name]


def taken(script: str, *names: str, **given: Any) -> dict[str, Any]:
    """Functions and classes of a script of the clone, which is not run: by their names, with `given` as their globals.
    The clone is the first folder of the path of modules."""
    # `async` was no keyword when some of them were written.
    tree = ast.parse((Path(sys.path[0]) / script).read_text("utf-8").replace("async=True", "non_blocking=True"))
    expected = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names
    ]
    result: dict[str, Any] = dict(given)
    exec(compile(ast.Module(expected, []), script, "exec"), result)
    return result
