"""Tiny tasks that a working network learns in a second or two."""

from __future__ import annotations

from typing import Any

import numpy as np
from farshift import Answers
from farshift.baselines.baseline import Baseline
from farshift.baselines.recipe import Recipe, RecipeBudget
from farshift.benchmarks.model import Budget, Task
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
