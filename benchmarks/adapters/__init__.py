"""Adapters, which turn other objects into a `Model`; one file per kind of object.

An adapter module has one or both of

    adapt(thing, task, seed) -> Model | None     None for another kind of object, else a model of a copy of it
    SCHEME, from_spec(rest, options) -> factory  for `scheme:rest` on the command line (own_model.py)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ...core.errors import FarshiftError, UnknownName
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


class Options(BaseModel):
    """Base of an adapter's options: its fields are the options, with their defaults and limits."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Kind = TypeVar("Kind", bound=Options)


def read_options(kind: type[Kind], scheme: str, given: Mapping[str, str]) -> Kind:
    """Parse the options `given` for an adapter of `scheme`. `FarshiftError` names a wrong one, never its value, which
    may be a misplaced secret."""
    for name in given:
        if name not in kind.model_fields:
            raise UnknownName(f"option of {scheme}:", name, kind.model_fields)
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "options"
        raise FarshiftError(f"option {field} of {scheme}: {first['msg']}") from None
