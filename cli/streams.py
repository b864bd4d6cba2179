"""stdout and stderr that are closed, lack characters in their encoding, or lost their reader."""

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
"""Replacements for our own characters in an encoding that lacks them."""


def configure_streams() -> None:
    """Make both streams accept any text: a character that the encoding lacks is replaced by a similar one, such as a
    hyphen for a table's line, or by its escape. Text written to a closed stream is discarded."""
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
    """A method of stdout whose operating system errors, such as a full disk, name standard output."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except BrokenPipeError:
            raise
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise FarshiftError(f"standard output: {why}: free some space, or redirect the output") from error

    return call


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
    """Discard further output to stdout after its reader has exited. Otherwise Python reports a broken pipe at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
