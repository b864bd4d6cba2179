"""TOML and JSON of others, read within bounds (`limits.py`): bytes, depth, and characters that can be written again."""

from __future__ import annotations

import json
import re
import tomllib
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from .errors import BadData, BadDefinition, get_first_line
from .limits import DOCUMENT_BYTES, DOCUMENT_DEPTH, INTEGER_BITS

_KEY = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?m)(?:^|[\[{{,])[ \t]*+(?:{_KEY}){{{DOCUMENT_DEPTH}}}")
"""A dotted key of too many parts: `tomllib` needs memory in the square of their number."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class BadDocument(BadData, ValueError):
    """A text that is not JSON or TOML, or exceeds a bound."""


def parse_json(
    content: str | bytes | bytearray,
    kind: type = object,
    where: str = "",
    *,
    load: Callable[[str], Any] = json.loads,
    surrogates: bool = False,
) -> Any:
    """The value of a JSON text. where: begins the message; load: another decoder. Raises `BadDocument` if it is not
    JSON or not of the `kind` list or dict, is nested too deeply, or (but with `surrogates`) has half a character, with
    which no file can be written."""
    try:
        text = content if isinstance(content, str) else content.decode(json.detect_encoding(content))
        value = load(text)
        if text.count("[") + text.count("{") > DOCUMENT_DEPTH:
            deque(_iterate_values(value), maxlen=0)
        if not surrogates and _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        if not isinstance(value, kind):
            raise BadDocument(f"it is not {'an object' if kind is dict else 'a list'}")
    except (ValueError, RecursionError) as error:
        raise _explain(error, f"{where} cannot be read as JSON: " if where else "") from error
    return value


def parse_messages(text: str) -> list[dict[str, Any]] | None:
    """Return the messages of a chat in JSON, a list of { role, content }; None if the text is none."""
    if not text.startswith("["):
        return None
    try:
        messages: list[dict[str, Any]] = parse_json(text, list)
    except BadDocument:
        return None
    is_chat = messages and all(
        isinstance(message, dict) and isinstance(message.get("role"), str) and "content" in message
        for message in messages
    )
    return messages if is_chat else None


def _explain(error: Exception, before: str = "") -> BadDocument:
    if isinstance(error, RecursionError):
        return BadDocument(f"{before}it is nested over {DOCUMENT_DEPTH} deep")
    if isinstance(error, UnicodeEncodeError):
        half = f"\\u{ord(error.object[error.start]):04x}"
        return BadDocument(f"{before}{half} is not a character (a lone surrogate)")
    return BadDocument(before + get_first_line(error))


def read_json(path: Path, kind: type = object, where: str = "") -> Any:
    """The value of a JSON file; as `parse_json`. Raises `OSError` where it cannot be read."""
    return parse_json(_read_content(path), kind, where)


def _read_content(path: Path) -> bytes:
    content = bytearray()
    with path.open("rb") as file:
        while len(content) <= DOCUMENT_BYTES and (piece := file.read(1 << 16)):  # `read` takes what it is asked for
            content += piece
    if len(content) > DOCUMENT_BYTES:
        raise BadDocument(f"it has over {DOCUMENT_BYTES:,} bytes")
    return bytes(content)


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises `BadDocument` with one line if it is not TOML, is nested too deeply, or has an
    integer that TOML has no room for."""
    try:
        if _LONG_KEY.search(text):
            raise RecursionError
        tables = tomllib.loads(text)
        if any(isinstance(value, int) and value.bit_length() > INTEGER_BITS for value in _iterate_values(tables)):
            raise BadDocument(f"it has an integer of over {INTEGER_BITS} bits")
    except (ValueError, RecursionError) as error:
        raise _explain(error) from error
    return tables


def _iterate_values(document: Any) -> Iterator[Any]:
    """Every value of a document. Raises `RecursionError` where lists and tables are nested too deeply."""
    level = [document]
    for _ in range(DOCUMENT_DEPTH + 1):
        yield from level
        inner = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = list(chain.from_iterable(inner))
        if not level:
            return
    raise RecursionError


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file; `BadDefinition` names the file, and the line where it cannot be read."""
    return parse_definition_text(read_text(path), path)


def parse_definition_text(text: str, path: Path) -> dict[str, Any]:
    """The TOML text of the file `path`; `BadDefinition` names the file, and the line where it cannot be read."""
    try:
        return parse_toml(text)
    except ValueError as error:
        raise BadDefinition(f"{path}: not valid TOML: {get_first_line(error)}") from error


def read_text(path: Path) -> str:
    """The text of a file; `BadDefinition` where it cannot be read."""
    try:
        return _read_content(path).decode()
    except ValueError as error:
        raise BadDefinition(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise BadDefinition(f"{path}: cannot be read: {error.strerror}") from error
