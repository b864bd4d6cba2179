"""The options of an adapter, from the command line: strings by name, checked against a declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ...core.errors import FarshiftError, UnknownName


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
