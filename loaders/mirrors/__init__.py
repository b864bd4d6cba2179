"""Mirrors: one file for each kind of place where a source's files can be had.

A mirror module has `NETWORK` (whether it needs one), `describe(mirror)` for messages, and
`fetch(mirror, target, size)`, which writes the file to `target` or raises `MirrorFailed` with the reason.
"""

from __future__ import annotations

import errno


class MirrorFailed(Exception):
    """This mirror did not give the file; the message says why. The next one is tried."""


def own_disk(error: BaseException) -> bool:
    """Whether an error is this machine's disk refusing, which no other mirror changes."""
    number = getattr(error, "errno", None)
    return number in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
