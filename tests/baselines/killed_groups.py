"""Replica groups on a toy that are killed at a chosen moment, in a process of their own."""

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from farshift.baselines.recipe import Recipe
from farshift.baselines.training import replica_group as teams
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.trained_group import TrainedGroup
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.model import Budget
from farshift.core.errors import ModelError

from .toys import ADD, additions, recipe
from .toys import Rows as Table

STEPS = 12


def made(algorithm: str = "erm", network: str = "mlp", steps: int = STEPS, **settings: Any) -> Recipe:
    return recipe(network, steps, algorithm, **{"batch_size": 8, "lr": 0.01} | settings)


def rows(groups: int = 0) -> FitInput:
    """Two thirds of all rows to train on and one to validate on, in so many environments."""
    full = additions()
    if groups:
        full.columns["group"] = np.array([f"g{position % groups}" for position in range(len(full))])
    locked = np.arange(len(full)) % 3 == 2
    train, val = (Table(**{name: column[some] for name, column in full.columns.items()}) for some in (~locked, locked))
    return FitInput(train, val)


def fitted(
    recipe: Recipe,
    members: list[Member],
    kept: Path | None = None,
    groups: int = 0,
    stack: int = 0,
    code: str = "",
    given: FitInput | None = None,
) -> TrainedGroup:
    group = ReplicaGroup(recipe, ADD, members, "toy/toy", kept, stack, code)
    return group.fit(given or rows(groups), Budget("quick"))


def answers(fit: TrainedGroup) -> dict[str, Any]:
    """What each member's checkpoints say of all rows, or why it failed."""
    ask = additions().only("a", "b")
    result: dict[str, Any] = {}
    for label, replica in fit.results.items():
        if isinstance(replica, ModelError):
            result[label] = str(replica)
        else:
            result |= {f"{label} {name}": model.predict(ask).scores.tolist() for name, model in replica.checkpoints()}
    return result


def in_a_child(go: Callable[[], Any]) -> int:
    """The exit code of a child process that does this: 0 where all went well, -9 where it was killed."""
    child = os.fork()
    if child == 0:
        try:
            go()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_before(owner: Any, name: str, call: int, go: Callable[[], Any]) -> int:
    """Do this in a child process that is killed (-9) right before call number `call`, from 1, of a function; checkpoints
    are written after every step."""

    def dying() -> None:
        full, left = getattr(owner, name), [call]

        def counted(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return full(*given, **named)

        setattr(owner, name, counted)
        teams.CHECKPOINT_SECONDS = 0.0
        go()

    return in_a_child(dying)
