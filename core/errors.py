"""Every error a user can cause: one hierarchy, one line each, saying what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

_NAMED = 12
"""Names for one line."""


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
        return replace_error_message, (type(self), str(self))


def replace_error_message(kind: type[FarshiftError], message: str) -> FarshiftError:
    """An error of the same kind with another message, whatever its constructor takes."""
    error = kind.__new__(kind)
    error.args = (message,)
    return error


def get_first_line(error: BaseException, most: int = 300, silent: str = "") -> str:
    """The first line of an error's message, at most `most` characters; if empty `silent`, or the error's type."""
    return (str(error).strip().splitlines() or [silent or type(error).__name__])[0][:most]


class UnknownName(FarshiftError):
    """No split, source, benchmark, baseline, part .. of this name."""

    def __init__(self, what: str, name: str, known: Iterable[str], hint: str = "", listed: str = "") -> None:
        """listed: the command that lists the names, printed if they are too many for a line."""
        super().__init__(f"no {what} named {name!r}: {suggest_names(name, known, listed)}{' ' + hint if hint else ''}")


def suggest_names(name: str, known: Iterable[str], listed: str = "") -> str:
    """What to write instead of an unknown name: similar names, else all of its family (`scan/..`), else all, or
    the command that lists them.

    >>> suggest_names("scan/lenght", ["cogs/depth", "scan/jump", "scan/length"])
    'did you mean scan/length?'
    >>> suggest_names("scan", ["cogs/depth", "scan/jump", "scan/length"])
    'choose from scan/jump, scan/length'
    """
    names = sorted(known)
    first, slash, rest = name.partition("/")
    family = [other for other in names if other.startswith(f"{first}/")]
    begun = [other for other in names if name and other.startswith(name)]
    if family and not rest:
        return _list_all(family, listed and f"{listed} {first}")
    alike = family or [other for other in names if ("/" in other) == bool(slash)]
    least = 0.8 if slash else 0.6  # similarity of Ratcliff and Obershelp, 0 to 1
    near = begun if 0 < len(begun) < 4 else difflib.get_close_matches(name, alike, 1, least)
    if not near and not family:
        families = {other.partition("/")[0] for other in names if "/" in other}
        near = [f"{other}/.." for other in difflib.get_close_matches(first, sorted(families), 1, 0.7)]
    if near:
        return f"did you mean {' or '.join(near)}?"
    if listed and not family and len(names) > _NAMED:
        return f"{listed} lists all {len(names):,}"
    return _list_all(family or names, f"{listed} {first}" if listed and family else listed)


def _list_all(names: Sequence[str], listed: str) -> str:
    shortened = f"choose from {shorten_list(names)}" if names else "there is none"
    return f"{shortened} (all of them: {listed})" if listed and len(names) > _NAMED else shortened


def shorten_list(names: Sequence[str]) -> str:
    """Names for one line: the first dozen, and the number of the others; one that spaces surround is in quotes."""
    more, names = len(names) - _NAMED, [name if name == name.strip() else repr(name) for name in names]
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more} more"


class BadData(FarshiftError):
    """Bytes or rows that do not match their digest."""


class Unavailable(FarshiftError):
    """No mirror gave the files of a source (no network, `--offline`, every mirror failed)."""


class LabelsWithheld(FarshiftError):
    """Labels that a model tried to read while it was trained or evaluated."""


class BadDefinition(FarshiftError):
    """An invalid source, split, benchmark or recipe file."""


class ModelError(FarshiftError):
    """Invalid predictions of a model; the message names part, batch and row ids."""


class BadRun(FarshiftError):
    """A run folder that is unfinished, edited, or of another benchmark."""


class BadSubmission(FarshiftError):
    """A submission that cannot be scored; the message lists every problem found, `problems` holds them one by one."""

    problems: tuple[Any, ...] = ()


class SubmissionRejected(FarshiftError):
    """A valid submission that a board rejects: its run or its team name belongs to another team there."""


class MissingExtra(FarshiftError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'farshift[{extra}]'")


class MissingGeneratorPackage(MissingExtra, Unavailable):
    """Rows whose optional package (a generator's or reader's) is not installed: as unavailable as those that no mirror
    has."""
