"""Mirrors: one file for each kind of place where a source's files can be had.

A mirror module has `NETWORK` (whether it needs one), `describe(mirror)` for messages, and
`fetch(mirror, target, size)`, which writes the file to `target` or raises `MirrorFailed` with the reason.
"""

from __future__ import annotations

import errno
from types import ModuleType
from typing import Any

from ...core.errors import BadDefinition
from ...core.plugins import load_module


class MirrorFailed(Exception):
    """This mirror did not give the file; the message says why. The next one is tried."""


def load_mirror(mirror: dict[str, Any], title: str) -> tuple[ModuleType, str]:
    """The module of a mirror's kind, and how messages name it; `BadDefinition` where it lacks what its kind needs.
    `title` is what it is a mirror of."""
    kind = load_module("loaders/mirrors", str(mirror.get("sort")), "sort of mirror")
    try:
        return kind, kind.describe(mirror)
    except KeyError as error:
        raise BadDefinition(f"a mirror of {title} ({mirror.get('sort')}) lacks {error}") from error


def is_disk_error(error: BaseException) -> bool:
    """Whether an error is this machine's disk refusing, which no other mirror changes."""
    number = getattr(error, "errno", None)
    return number in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
