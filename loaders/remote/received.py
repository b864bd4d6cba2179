"""Parse untrusted text and JSON: the result is a value or a `ValueError` of one line."""

from __future__ import annotations

import json
from typing import Any


def parse_json_object(content: bytes | str) -> dict[str, Any]:
    """Parse a JSON object. Raises `ValueError` for anything else, including one that is nested too deeply."""
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("its JSON is not an object")
    return value
