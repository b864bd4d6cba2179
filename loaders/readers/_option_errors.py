"""What is wrong with a reader's options, in a line that names the option."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from ...core.errors import suggest_names


def describe_option(error: ValidationError, options: type[BaseModel], reader: str) -> str:
    """The first thing that is wrong with the options of a reader; of one that there is not, those like it."""
    first = error.errors()[0]
    at = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        return f"{reader}: no option named {at!r}: {suggest_names(at, options.model_fields)}"
    return f"{reader}: option {at}: {first['msg']}"
