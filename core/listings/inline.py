"""Values as TOML writes them in one line: what a message gives to be copied into a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def write_inline(value: Any) -> str:
    """A table, list, text, number or truth value in one line of TOML.

    >>> write_inline({"duplicates": {"train/ood_test": 57}, "names": ["a", "b"]})
    '{ duplicates = { "train/ood_test" = 57 }, names = ["a", "b"] }'
    """
    if isinstance(value, Mapping):
        items = ", ".join(f"{_format_key(key)} = {write_inline(item)}" for key, item in value.items())
        return f"{{ {items} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_inline, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _format_key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
