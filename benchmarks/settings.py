"""Settings: named values for a model's factory; and what a run card says of them, and of what a model remarks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from ..core.errors import FarshiftError
from .limits import MAX_CANDIDATES, find_name_problem

Settings = Mapping[str, Mapping[str, Any]]

NONE: Settings = {"": {}}
"""The one nameless setting of a model that is given none."""

_SHORT = 200
"""Characters of a text that a run card repeats."""


def check_settings(settings: Settings | None) -> Settings:
    """The settings by name; one nameless one where there are none."""
    if not settings:
        return NONE
    if not isinstance(settings, Mapping) or len(settings) > MAX_CANDIDATES:
        raise FarshiftError(f"settings: give at most {MAX_CANDIDATES} by name, such as {{'small': {{'hidden': 64}}}}")
    for key, values in settings.items():
        if problem := find_name_problem(key, "its name") or ("/" in key and "it must not hold a /"):
            raise FarshiftError(f"setting {key!r}: {problem}")
        if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
            raise FarshiftError(f"setting {key!r}: give its values by name, such as {{'hidden': 64}}")
    return settings


def to_card_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """A setting as the run card says it: numbers and short texts as they are, anything else as JSON, cut to its digest
    where it is long. So an unfinished run goes on with the same values only."""
    return clean_remarks({name: _shorten_value(value) for name, value in values.items()})


def _shorten_value(value: Any) -> Any:
    if isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _SHORT):
        return value
    try:
        text = json.dumps(value, default=_to_json_value)
    except (TypeError, ValueError):  # keys that are not names, a list that holds itself
        text = _to_json_value(value)
    return text if len(text) <= _SHORT else f"sha256:{sha256(text.encode()).hexdigest()}"


def _to_json_value(value: Any) -> Any:
    """What JSON has no word for: an array's numbers, a date, else what kind of thing it is."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def clean_remarks(remarks: object) -> dict[str, Any]:
    """What of a model's remarks goes on the run card: finite numbers of 64 bits, and short texts."""
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
    """At most so many characters of a text, all of which can be stored: half of a surrogate pair cannot."""
    return str(value)[:most].encode("utf-8", "replace").decode()
