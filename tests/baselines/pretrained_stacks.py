"""Tiny pretrained networks of every family, and trainings of them: on pictures, on texts and on sounds."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import tiny_hf
import tiny_vision
import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.encoding.token_ids import choose_encoding
from farshift.baselines.recipe import find_recipe, make_fine_tuned, resolve_settings
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Task
from scipy.io import wavfile
from torch import Tensor

from .toys import words

PICTURES = ("resnet", "convnext", "vit", "dinov2", "clip")
ONE_WAY = ("gpt2", "llama")
SOUNDS = ("group", "layer")
TEXTS = ("bert", *ONE_WAY)
STEPS, ROWS, CLASSES, RATE = 4, 24, 3, 4000
HEAD = {"head.weight", "head.bias"}
TURN = Task("classification", ("x",), "turn", classes=2)
COMMANDS = ["walk left", "run", "look right twice and jump", "jump", "walk " * 20] * 4


class Folders(dict[str, str]):
    """The folder of each network's weights, written when it is first asked for."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __missing__(self, kind: str) -> str:
        folder = self.home / kind
        if kind in PICTURES:
            tiny_vision.saved(folder, kind)
        elif kind in ONE_WAY:
            tiny_hf.one_way(folder, kind)
        elif kind in SOUNDS:
            tiny_vision.sounds(folder, norm=kind)
        else:
            tiny_hf.classifier(folder)
        self[kind] = str(folder)
        return self[kind]


def sound(number: int, rate: int = RATE) -> bytes:
    """A tone of 60 to 90 samples at the models' rate."""
    count = 60 + 10 * (number % 4)
    tone = np.sin(np.arange(count * rate // RATE) * (0.2 + 0.05 * number))
    out = io.BytesIO()
    wavfile.write(out, rate, (20_000 * tone).astype(np.int16))
    return out.getvalue()


def inputs_of(kind: str) -> np.ndarray:
    """The texts or the sounds of twenty rows."""
    return words(COMMANDS) if kind in TEXTS else words([sound(number) for number in range(20)])


def settled(kind: str, weights: str, recipe: str = "erm", **own: Any) -> dict[str, Any]:
    sort = {} if kind in PICTURES else {"inputs": "tokens" if kind in TEXTS else "sounds"}
    built = make_fine_tuned(find_recipe(recipe), weights, side=8, **sort)
    return resolve_settings(built, "b", {"batch_size": 4, "lr": 1e-2, **own})


def pictures() -> tuple[Data, Sizes]:
    x = torch.rand(ROWS, 8 * 8 * 3, generator=torch.Generator().manual_seed(0))
    label = torch.arange(ROWS) % CLASSES
    group = torch.arange(ROWS) // CLASSES % 2
    inputs = torch.zeros(ROWS, 0, dtype=torch.int64), x
    data = Data(inputs, label[None], torch.ones(ROWS, dtype=torch.int64), torch.ones(1, ROWS), group)
    return data, Sizes(CLASSES, numbers=8 * 8 * 3, shape=(8, 8, 3))


def encoded(kind: str, settings: dict[str, Any]) -> tuple[Any, Data]:
    """The encoding of texts or sounds, and their rows."""
    rows = {"x": inputs_of(kind), "turn": np.arange(20) % 2}
    coding = choose_encoding(TURN, rows, settings)
    return coding, Data.of(coding.encode(rows), torch.ones(20), torch.arange(20) // 2 % 2)


def stack_of(
    kind: str, weights: str, names: list[str], recipe: str = "erm", steps: int = STEPS, **own: Any
) -> tuple[ReplicaStack, Data]:
    """Replicas before their first step."""
    settings = settled(kind, weights, recipe, **own)
    if kind in PICTURES:
        data, sizes = pictures()
    else:
        coding, data = encoded(kind, settings)
        sizes = coding.sizes
    algorithm = find_recipe(recipe).algorithm or ""
    each = [settings] * len(names)
    return ReplicaStack("pretrained", algorithm, each, names, sizes, "classification", data, steps), data


def trained(kind: str, weights: str, names: list[str], recipe: str = "erm", steps: int = STEPS, **own: Any) -> Training:
    stack, data = stack_of(kind, weights, names, recipe, steps, **own)
    training = Training(stack, data, steps)
    training.run()
    assert not training.outcome.failed
    return training


def parts(stack: ReplicaStack, place: int = 0) -> dict[str, Tensor]:
    return {name: value[place].detach().clone() for name, value in stack.network.state_dict().items()}


def start(kind: str, weights: str) -> dict[str, Tensor]:
    """The weights as they were saved, of a network before its first step."""
    return parts(stack_of(kind, weights, ["r"])[0])


def end(kind: str, weights: str, recipe: str = "erm", **own: Any) -> dict[str, Tensor]:
    """The weights after training."""
    return parts(trained(kind, weights, ["a"], recipe, **own).stack)


def moved(kind: str, weights: str, **own: Any) -> set[str]:
    """The names of the saved weights that training has changed."""
    before, after = start(kind, weights), end(kind, weights, **own)
    return {name for name in before if not torch.equal(before[name], after[name])}
