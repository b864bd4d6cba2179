"""Every error a user can cause: one hierarchy, one line each, saying what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

_NAMED = 12
_HARDLY = 0.1


class FarshiftError(Exception):
    """Wrong usage or bad input. The command line prints it as one line and exits with code 2.

    >>> import farshift as fs
    >>> try:
    ...     fs.load("scan/lenght", part="train")
    ... except fs.FarshiftError as error:
    ...     print(error)
    no split named 'scan/lenght': did you mean scan/length?
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel between processes by their message, whatever their constructor takes.
        return restated, (type(self), str(self))


def restated(kind: type[FarshiftError], message: str) -> FarshiftError:
    """An error of the same kind with another message, whatever its constructor takes."""
    error = kind.__new__(kind)
    error.args = (message,)
    return error


def first_line(error: BaseException, most: int = 300, silent: str = "") -> str:
    """The first line of what an error says, at most so many characters; where it says nothing `silent`, or its type."""
    return (str(error).strip().splitlines() or [silent or type(error).__name__])[0][:most]


class UnknownName(FarshiftError):
    """No split, source, benchmark, baseline, part .. of this name."""

    def __init__(self, what: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(known)
        near = _near(name, names)
        offer = f"did you mean {' or '.join(near)}?" if near else f"there are: {some_of(names) or 'none'}"
        super().__init__(f"no {what} named {name!r}: {offer}{' ' + hint if hint else ''}")


def _near(name: str, names: Sequence[str]) -> list[str]:
    """The names most like `name`, at most three: the best, and those that are hardly less like it."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    alike = [difflib.SequenceMatcher(None, other, name).ratio() for other in near]
    return [other for other, ratio in zip(near, alike, strict=True) if ratio > alike[0] - _HARDLY]


def some_of(names: Sequence[str]) -> str:
    """Names as a line can hold them: the first dozen, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more} more"


class BadData(FarshiftError):
    """Bytes or rows that are not what a digest promised."""


class Unavailable(FarshiftError):
    """A source's bytes could not be had from any mirror (no network, `--offline`, every mirror failed)."""


class LabelsWithheld(FarshiftError):
    """Labels that a model was about to look up while it was trained or asked."""


class BadDefinition(FarshiftError):
    """A source, split, benchmark or recipe file that does not say what it must."""


class ModelError(FarshiftError):
    """A model that answered wrongly: which part, which batch, which row ids."""


class BadRun(FarshiftError):
    """A run folder that is unfinished, edited, or of another benchmark."""


class BadSubmission(FarshiftError):
    """A submission that cannot be scored; the message lists every problem found, `problems` holds them one by one."""

    problems: tuple[Any, ...] = ()


class NotTaken(FarshiftError):
    """A valid submission that a board does not take: its run, or the name of its team, is another's there."""


class MissingExtra(FarshiftError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'farshift[{extra}]'")
