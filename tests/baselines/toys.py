"""Tiny tasks that a working network learns in a second or two."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from farshift import Answers
from farshift.baselines.baseline import Baseline
from farshift.baselines.encoding.encoding import make_encoding
from farshift.baselines.recipe import Recipe, RecipeBudget, resolve_settings
from farshift.baselines.training.feed import move_to_device
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Budget, Task
from farshift.core.world import SINGLE_PROCESS, World
from numpy.typing import NDArray


class Rows:
    """Training rows held in a dict of columns."""

    def __init__(self, **columns: Any) -> None:
        self.columns = {name: np.asarray(column) for name, column in columns.items()}
        self.columns.setdefault("weight", np.ones(len(self)))

    def numpy(self) -> dict[str, NDArray[Any]]:
        return dict(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def only(self, *names: str) -> dict[str, NDArray[Any]]:
        return {name: self.columns[name] for name in names}


def words(texts: list[str]) -> NDArray[Any]:
    return np.array(texts, dtype=object)


ADD = Task("classification", ("a", "b"), "sum", classes=7, categories=("a", "b"))
TURN = Task("sequence", ("command",), "actions")
PARITY = Task("sequence", ("bits",), "sums", tokens="character", aligned=True)


def additions() -> Rows:
    """a + b modulo 7, all 49 pairs."""
    a, b = np.divmod(np.arange(49), 7)
    return Rows(a=a, b=b, sum=(a + b) % 7)


def commands() -> Rows:
    """`walk left twice` -> `L W L W`, and the like: 36 rows of 1 to 6 tokens."""
    rows = [
        (f"{verb}{turn}{often}", " ".join([*step, letter] * count))
        for verb, letter in (("walk", "W"), ("run", "R"), ("look", "K"), ("jump", "J"))
        for turn, step in (("", []), (" left", ["L"]), (" right", ["T"]))
        for often, count in (("", 1), (" twice", 2), (" thrice", 3))
    ]
    return Rows(command=words([a for a, _ in rows]), actions=words([b for _, b in rows]))


def bits(rows: int, length: int) -> Rows:
    """Running parity of random bits."""
    drawn = np.random.default_rng(length).integers(0, 2, (rows, length))
    texts = [["".join(map(str, row)) for row in table] for table in (drawn, drawn.cumsum(axis=1) % 2)]
    return Rows(bits=words(texts[0]), sums=words(texts[1]))


def recipe(network: str, steps: int = 200, algorithm: str = "erm", **settings: Any) -> Recipe:
    """A recipe of a network and an algorithm; twice the steps in full."""
    return Recipe(
        name="toy",
        title="Toy",
        citation="none",
        network=network,
        algorithm=algorithm,
        settings=settings,
        quick=RecipeBudget(steps=steps),
        full=RecipeBudget(steps=2 * steps),
    )


def trained(made: Recipe, task: Task, rows: Rows, seed: int = 0) -> Baseline:
    model = Baseline(made, task, seed, "toy/toy")
    model.fit(rows, None, Budget("quick"))
    return model


def accuracy(model: Baseline, task: Task, rows: Rows) -> float:
    answer = model.predict(rows.only(*task.inputs))
    prediction = answer.prediction if isinstance(answer, Answers) else np.array(answer)
    return float(np.mean(prediction == rows.columns[task.label]))


def start_training(
    made: Recipe,
    task: Task,
    rows: Rows,
    each: Sequence[Mapping[str, Any]] = ({}, {}),
    names: Sequence[str] = ("first", "second"),
    *,
    feed: str = "",
    dtype: torch.dtype = torch.float32,
    world: World = SINGLE_PROCESS,
) -> Training:
    """A training of one replica for each of the settings in `each`, on rows that are encoded as a harness would.

    feed: how pictures come to the device, where they are not left as they are encoded."""
    columns = rows.numpy()
    weight = torch.from_numpy(np.asarray(columns.pop("weight"), np.float64))
    group = torch.from_numpy(np.unique(columns.pop("group"), return_inverse=True)[1]) if "group" in columns else None
    settings = [resolve_settings(made, "toy/toy", dict(own)) for own in each]
    coding = make_encoding(task, columns, settings[0])
    data = Data.of(coding.encode(columns), weight, group)
    if feed:
        data = move_to_device(data, feed, "cpu")
    if dtype == torch.float64:
        data = replace(data, inputs=tuple(x.double() if x.is_floating_point() else x for x in data.inputs))
    kind, steps = (made.network or "", made.algorithm or ""), made.steps("quick", "toy/toy")
    stack = ReplicaStack(*kind, settings, names, coding.sizes, task.type, data, steps, dtype)
    return Training(stack, data, steps, world)
