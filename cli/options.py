"""Options that several commands share: declared once, singly or as the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

T = TypeVar("T")

Token = Annotated[
    str,
    typer.Option(
        "--token",
        metavar="TOKEN",
        help="Access token for a server (default: FARSHIFT_TOKEN, or tokens.toml in FARSHIFT_HOME).",
    ),
]


def with_options(options: type[T]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command whose first parameter is a dataclass of options gets one option for each of its fields, whose types are
    annotated as a command's parameters are; then its own parameters.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Target:
    ...     on: str = ""
    >>> @with_options(Target)
    ... def show(target: Target, loud: bool = False) -> None:
    ...     print(target.on, loud)
    >>> show(on="scan/length")
    scan/length False
    """
    known = get_type_hints(options, include_extras=True)
    shared = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=known[field.name],
        )
        for field in fields(options)  # type: ignore[arg-type]
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        _, *own = signature(command).parameters.values()
        rest = [parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]) for parameter in own]

        @wraps(command)
        def wrapper(**given: Any) -> None:
            command(
                options(
                    **{parameter.name: given.pop(parameter.name) for parameter in shared if parameter.name in given}
                ),
                **given,
            )

        del wrapper.__wrapped__  # its signature is not this one's
        wrapper.__signature__ = signature(wrapper).replace(parameters=[*shared, *rest])  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in (*shared, *rest)} | {
            "return": None
        }
        return wrapper

    return decorate
