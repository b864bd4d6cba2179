"""What others sent, read as text and JSON: whatever it holds, the outcome is a value or a `ValueError` of one line."""

from __future__ import annotations

import json
from typing import Any


def parse_json_object(content: bytes | str) -> dict[str, Any]:
    """A JSON object; `ValueError` for anything else, also for one that nests too deep to be read."""
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError("its JSON nests too deep") from error
    if not isinstance(value, dict):
        raise ValueError("its JSON is no object")
    return value
