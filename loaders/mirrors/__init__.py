"""Mirrors: one module for each kind of place from which a source's files can be fetched.

A mirror module has `NETWORK` (whether it needs a network), `describe(mirror)` for messages, and
`fetch(mirror, target, size)`, which writes the file to `target` or raises `MirrorFailed` with the reason.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

from ...core.errors import BadDefinition
from ...core.files import is_offline
from ...core.plugins import load_module
from ...core.progress import log_message

T = TypeVar("T")


class MirrorFailed(Exception):
    """A mirror did not give the file, for the reason in the message. The next mirror is tried."""


def load_mirror(mirror: dict[str, Any], title: str) -> tuple[ModuleType, str]:
    """Return the module of a mirror's kind, and the mirror's name in messages. Raises `BadDefinition` if a required key
    is missing. `title` names the mirrored file."""
    kind = load_module("loaders/mirrors", str(mirror.get("sort")), "sort of mirror")
    try:
        return kind, kind.describe(mirror)
    except KeyError as error:
        raise BadDefinition(f"a mirror of {title} ({mirror.get('sort')}) lacks {error}") from error


def try_mirrors(
    mirrors: Sequence[dict[str, Any]],
    title: str,
    reasons: list[str],
    fetch: Callable[[ModuleType, dict[str, Any]], T],
) -> T | None:
    """Return what `fetch`, called with the module of each mirror and the mirror, returns for the first that does not
    fail; None if all fail. The reasons are appended to `reasons`, and logged if one succeeds. Without a network only
    those that need none are tried."""
    for mirror in mirrors:
        kind, name = load_mirror(mirror, title)
        if kind.NETWORK and is_offline():
            reasons.append(f"{name}: not tried (offline)")
            continue
        try:
            result = fetch(kind, mirror)
        except MirrorFailed as error:
            reasons.append(f"{name}: {error}")
            continue
        if reasons:
            log_message(f"{title} is from {name} ({'; '.join(reasons)})")
        return result
    return None


def is_disk_error(error: BaseException) -> bool:
    """Whether an error comes from the local disk, so that other mirrors would fail too."""
    number = getattr(error, "errno", None)
    return number in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
