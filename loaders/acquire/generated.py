"""Files that a command writes among the user's own, and may replace as long as nobody has edited them.

The first line is a comment with the digest of all that follows.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

_MARK = re.compile(rb"# Written by `[^`]*`, which replaces it unless it was edited; sha256 ([0-9a-f]{64})\n")


def mark_generated(content: bytes, command: str) -> bytes:
    """The content of a TOML file below a line that says which command wrote it."""
    digest = sha256(content).hexdigest()
    return f"# Written by `{command}`, which replaces it unless it was edited; sha256 {digest}\n".encode() + content


def strip_mark(content: bytes) -> bytes:
    """The content without the line of `mark_generated`, where it has one."""
    return _MARK.sub(b"", content, count=1) if _MARK.match(content) else content


def is_unedited(path: Path) -> bool:
    """Whether a file was written by a command, and is as it was written."""
    content = path.read_bytes()
    match = _MARK.match(content)
    return match is not None and sha256(content[match.end() :]).hexdigest() == match[1].decode()
