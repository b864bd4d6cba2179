"""The lines of a UTF-8 file, split at line feeds only, since texts may hold Unicode's other line separators."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import BadData


def read_utf8_lines(name: str, content: Path | bytes) -> list[str]:
    """Read the lines of a file, or of its bytes, without line ends. Raises `BadData` if it is not UTF-8."""
    content = content.read_bytes() if isinstance(content, Path) else content
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadData(f"{name} is not UTF-8 text: byte {error.start}") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines and not lines[-1] else lines
