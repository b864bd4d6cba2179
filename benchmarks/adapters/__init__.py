"""Adapters, which turn other objects into a `Model`; one file per kind of object.

An adapter module has one or both of

    adapt(thing, task, seed) -> Model | None     None for another kind of object, else a model of a copy of it
    SCHEME, from_spec(rest, options) -> factory  for `scheme:rest` on the command line (own_model.py)
"""

from __future__ import annotations

from typing import Any

from ...core.plugins import find_files_by_name, load_module
from ..model import Model, Task


def adapt_model(thing: Any, task: Task, seed: int) -> Model | None:
    """Return the object as a model, by the first adapter that supports it; None if none does."""
    for name in sorted(find_files_by_name("benchmarks/adapters", ".py")):
        adapt = getattr(load_module("benchmarks/adapters", name, "adapter"), "adapt", None)
        model: Model | None = adapt(thing, task, seed) if adapt else None
        if model is not None:
            return model
    return None
