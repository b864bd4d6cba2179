"""Counting classes, and the states that are sums of what was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..model import Task

if TYPE_CHECKING:
    from . import State


def tally(classes: NDArray[Any], task: Task) -> NDArray[np.int64]:
    """How often each class occurs, shape (task.classes,); the -1 of a lost row is no class."""
    return np.bincount(classes[classes >= 0], minlength=task.classes or 0)


def added(left: State, right: State) -> State:
    """The state of both where each of its arrays is a sum over rows."""
    return {name: left[name] + right[name] for name in left}
