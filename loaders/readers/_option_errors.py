"""One-line messages about invalid options of a reader."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from ...core.errors import suggest_names


def describe_option(error: ValidationError, options: type[BaseModel], reader: str) -> str:
    """Describe the first error in the options of a reader; for an unknown option, suggest similar ones."""
    first = error.errors()[0]
    at = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        return f"{reader}: no option named {at!r}: {suggest_names(at, options.model_fields)}"
    return f"{reader}: option {at}: {first['msg']}"
