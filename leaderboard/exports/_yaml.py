"""Plain data as YAML 1.2: mappings and lists in blocks, every text quoted as in JSON, which YAML reads as it is; names
that no YAML takes for anything else stand bare."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON leaves as they are, and YAML does not take, or reads as the end of a line."""
_BARE = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[a-z_][a-z0-9_]*", re.IGNORECASE)


def dumped(value: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """The value in blocks, two blanks a level."""
    return ("\n".join(_lines(value)) + "\n").encode()


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [line for key, item in value.items() for line in _entry(f"{_name(key)}:", item)]
    if isinstance(value, list | tuple) and value:
        return [line for item in value for line in _item(item)]
    return [_scalar(value)]


def _name(key: str) -> str:
    """YAML 1.1 reads a bare no, on or null as a value of another type."""
    return key if _BARE.fullmatch(key) else _scalar(key)


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):  # YAML 1.1 takes 1e-07 for a text
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _entry(head: str, item: Any) -> list[str]:
    inner = _lines(item)
    if isinstance(item, Mapping | list | tuple) and item:
        return [head, *(f"  {line}" for line in inner)]
    return [f"{head} {inner[0]}"]


def _item(item: Any) -> list[str]:
    first, *rest = _lines(item)
    return [f"- {first}", *(f"  {line}" for line in rest)]
