"""Settings: named values for a model's factory; their form on a run card, and that of a model's remarks; and how large
a run may be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from ..core.errors import FarshiftError

MAX_SEEDS = 100
MAX_CANDIDATES = 1000
MAX_TEXT = 100_000
"""Maximum seeds and candidates of a run, and characters of a predicted text, for harness and boards."""


def find_name_problem(name: Any, whose: str = "the model's name") -> str:
    """Return what is wrong with the name of a model, setting or checkpoint; empty if nothing is."""
    if isinstance(name, str) and name.strip() and len(name) <= 100 and name.isprintable():
        return ""
    return f"{whose} must be 1 to 100 printable characters, not spaces alone"


Settings = Mapping[str, Mapping[str, Any]]

NONE: Settings = {"": {}}
"""The single unnamed setting of a model without settings."""

_SHORT = 200
"""Maximum characters of a text on a run card."""


def check_settings(settings: Settings | None) -> Settings:
    """Return the settings by name; a single unnamed one if there are none."""
    if not settings:
        return NONE
    if not isinstance(settings, Mapping) or len(settings) > MAX_CANDIDATES:
        raise FarshiftError(f"settings: give at most {MAX_CANDIDATES}, by name, such as {{'small': {{'hidden': 64}}}}")
    for key, values in settings.items():
        if problem := find_name_problem(key, "its name") or ("/" in key and "it must not contain a /"):
            raise FarshiftError(f"setting {key!r}: {problem}")
        if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
            raise FarshiftError(f"setting {key!r}: give its values by name, such as {{'hidden': 64}}")
    return settings


def to_card_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a setting for the run card: numbers and short texts unchanged, anything else as JSON, or its digest if it
    is long. An unfinished run is therefore resumed only with the same values."""
    return clean_remarks({name: _shorten_value(value) for name, value in values.items()})


def _shorten_value(value: Any) -> Any:
    if isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _SHORT):
        return value
    try:
        text = json.dumps(value, default=_to_json_value)
    except (TypeError, ValueError):  # keys that are not strings, a list that contains itself
        text = _to_json_value(value)
    return text if len(text) <= _SHORT else f"sha256:{sha256(text.encode()).hexdigest()}"


def _to_json_value(value: Any) -> Any:
    """Convert a value for JSON: an array's numbers, a date in ISO format, else the name of its type."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def clean_remarks(remarks: object) -> dict[str, Any]:
    """Return the remarks for the run card: finite numbers of 64 bits, and short texts."""
    if not isinstance(remarks, Mapping):
        return {}
    cleaned: dict[str, Any] = {}
    for key, value in remarks.items():
        if getattr(value, "ndim", None) == 0:  # a NumPy scalar, an array or tensor of one number
            value = value.item()
        if (isinstance(value, int) and abs(value) < 2**63) or (isinstance(value, float) and math.isfinite(value)):
            cleaned[_truncate_text(key, 100)] = value
        elif isinstance(value, str | float):
            cleaned[_truncate_text(key, 100)] = _truncate_text(value, _SHORT)
    return cleaned


def _truncate_text(value: object, most: int) -> str:
    """Truncate a text and replace characters that cannot be stored (halves of surrogate pairs)."""
    return str(value)[:most].encode("utf-8", "replace").decode()
