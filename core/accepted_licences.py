"""Licences that their owners want accepted: shown once, remembered in the user's home."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .errors import Unavailable
from .files import get_user_home, write_atomically

_accepted_now: ContextVar[tuple[str, ...]] = ContextVar("_given", default=())


class LicenceNotAccepted(Unavailable):
    """Data whose licence has to be accepted first."""

    licence = ""


@contextmanager
def accept_licences(licences: tuple[str, ...]) -> Iterator[None]:
    """While the context lasts, these licences count as accepted (by `--accept`); those that are asked for are
    remembered."""
    before = _accepted_now.set((*_accepted_now.get(), *licences))
    try:
        yield
    finally:
        _accepted_now.reset(before)


def require_accepted_licence(licence: str, what: str, terms: str = "") -> None:
    """`LicenceNotAccepted` where the user has not accepted a licence: with `--accept`, in `FARSHIFT_ACCEPT` (several
    are separated by commas), or earlier."""
    known = get_user_home() / "accepted.txt"
    remembered = known.read_text("utf-8").splitlines() if known.exists() else []
    if licence in remembered:
        return
    named = [name.strip() for name in os.environ.get("FARSHIFT_ACCEPT", "").split(",")]
    if licence in (*named, *_accepted_now.get()):
        write_atomically(known, "".join(f"{name}\n" for name in sorted({*remembered, licence})).encode())
        return
    error = LicenceNotAccepted(
        f"{what} is published under {licence}{f' ({terms})' if terms else ''}: read its terms, then repeat with "
        f"FARSHIFT_ACCEPT='{licence}' in the environment, or farshift splits pull with --accept '{licence}'"
    )
    error.licence = licence
    raise error
