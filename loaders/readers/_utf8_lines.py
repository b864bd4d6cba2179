"""The lines of a UTF-8 file: cut at line feeds alone, for texts hold other characters that Unicode calls line ends."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import BadData


def read_utf8_lines(name: str, content: Path | bytes) -> list[str]:
    """The lines of a file or of its bytes, without their ends; `BadData` names a file that is not UTF-8."""
    content = content.read_bytes() if isinstance(content, Path) else content
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadData(f"{name} is not UTF-8 text: byte {error.start}") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines and not lines[-1] else lines
