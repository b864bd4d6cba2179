"""Files that a command writes into the user's folders, and may replace as long as they are unedited.

The first line is a comment with the digest of the rest.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

_MARK = re.compile(rb"# Written by `[^`]*`, which replaces it unless it was edited; sha256 ([0-9a-f]{64})\n")


def mark_generated(content: bytes, command: str) -> bytes:
    """Prepend to a TOML file's content a line that names the command that wrote it."""
    digest = sha256(content).hexdigest()
    return f"# Written by `{command}`, which replaces it unless it was edited; sha256 {digest}\n".encode() + content


def strip_mark(content: bytes) -> bytes:
    """Return the content without the line of `mark_generated`, if it has one."""
    return _MARK.sub(b"", content, count=1) if _MARK.match(content) else content


def is_unedited(path: Path) -> bool:
    """Whether a file was written by a command and has not been changed since."""
    content = path.read_bytes()
    match = _MARK.match(content)
    return match is not None and sha256(content[match.end() :]).hexdigest() == match[1].decode()
