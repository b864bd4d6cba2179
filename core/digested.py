"""Content with its digest behind it: what a disk did to a derived file is found when it is read."""

from __future__ import annotations

from hashlib import sha256

_BYTES = 32


def with_digest(content: bytes) -> bytes:
    """The content, and its sha256."""
    return content + sha256(content).digest()


def without_digest(kept: bytes) -> bytes:
    """What `with_digest` was given; `ValueError` where it is not that any more."""
    content = kept[:-_BYTES]
    if with_digest(content) != kept:
        raise ValueError("its digest is another")
    return content
