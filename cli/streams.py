"""stdout and stderr as they are found: closed, in an encoding that lacks characters, or abandoned by their reader."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from ..core.errors import FarshiftError

P = ParamSpec("P")
T = TypeVar("T")

_PLAIN = dict(zip("─│—–…±×·−’≥", ("-", "|", "-", "-", "..", "+-", "x", ".", "-", "'", ">="), strict=True))
"""What stands for a sign of ours where the encoding has none."""


def configure_streams() -> None:
    """Make both streams take any text: of a character that the encoding lacks a like one is written, such as a hyphen
    for a table's line, else its escape. What is written to a closed stream goes nowhere."""
    codecs.register_error("farshift", _escape_characters)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed when the process began (>&-)
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        else:
            stream.reconfigure(errors="farshift")
    # By its methods, as the libraries that draw tables and helps write to it by themselves.
    sys.stdout.write, sys.stdout.flush = _explain_os_errors(sys.stdout.write), _explain_os_errors(sys.stdout.flush)  # type: ignore[method-assign]


def _explain_os_errors(method: Callable[P, T]) -> Callable[P, T]:
    """A method of stdout by which the operating system's refusals, such as for want of space, say what they are of."""

    @wraps(method)
    def called(*given: P.args, **named: P.kwargs) -> T:
        try:
            return method(*given, **named)
        except BrokenPipeError:
            raise
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise FarshiftError(f"standard output: {why}: free some, or send it to another place") from error

    return called


def has_all_characters() -> bool:
    """Whether stdout's encoding has every character."""
    return codecs.lookup(sys.stdout.encoding or "ascii").name.startswith("utf-")


def _escape_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(
        _PLAIN.get(character) or character.encode("ascii", "backslashreplace").decode() for character in missing
    ), error.end


def discard_output() -> None:
    """Write nothing more to stdout: whoever read it has gone. Without this Python complains of it as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
