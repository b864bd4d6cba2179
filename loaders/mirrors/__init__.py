"""Mirrors: one file a sort of place where a source's files can be had.

A mirror module has `NETWORK` (whether it needs one), `describe(mirror)` for messages, and
`fetch(mirror, target, size)`, which writes the file to `target` or raises `MirrorFailed` with the reason.
"""

from __future__ import annotations


class MirrorFailed(Exception):
    """This mirror did not give the file; the message says why. The next one is tried."""
