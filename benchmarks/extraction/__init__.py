"""Extraction rules, which extract a prediction from a language model's output; one file each, versioned.

An extraction module has

    VERSION: int                    incremented by any change that extracts something else from some text
    TASKS: tuple[str, ...]          the supported task types
    extract(text, task) -> prediction | None
    EARLIER: dict[int, extract]     optional: older versions, for benchmarks that name them

A prediction is a class (its index) for classification, a finite number for regression, a text for sequences; None if
the text has no answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from ...core.errors import BadDefinition
from ...core.plugins import load_module
from ..model import Task
from ..settings import MAX_TEXT

Prediction = str | int | float
Extract = Callable[[str, Task], Prediction | None]

_INDEX = re.compile(r"[-+]?[0-9]{1,18}")
"""An integer in ASCII digits, short enough for Python's limit on integer conversion."""


def load_extraction(name: str, version: int, task: Task) -> Extract:
    """Load an extraction rule by name; raises `BadDefinition` for a missing version or an unsupported task."""
    plugin = load_module("benchmarks/extraction", name, "extraction")
    versions: dict[int, Extract] = {**getattr(plugin, "EARLIER", {}), plugin.VERSION: plugin.extract}
    if version not in versions:
        raise BadDefinition(f"extraction {name}@{version} is required, but version {plugin.VERSION} is installed")
    if task.type not in plugin.TASKS:
        raise BadDefinition(f"extraction {name} does not support {task.type} tasks")
    return versions[version]


def parse_prediction(text: str, task: Task) -> Prediction | None:
    """Parse `text`, which contains only an answer; None if it is not a valid answer to the task.

    A class is given by its name (in any case), or by its index if no name is itself a number. White space around the
    answer, and the asterisks and full stop that chat models add, are ignored for classes and numbers.
    """
    text = text.strip()
    if task.type == "sequence":
        return text if 0 < len(text) <= MAX_TEXT else None
    bare = text.lstrip("* ").rstrip("*. ")
    return _parse_class(text, bare, task) if task.type == "classification" else _parse_number(bare)


def _parse_class(text: str, bare: str, task: Task) -> int | None:
    for candidate in (text, bare):
        if candidate in task.names:
            return task.names.index(candidate)
        alike = [index for index, name in enumerate(task.names) if name.casefold() == candidate.casefold()]
        if len(alike) == 1:
            return alike[0]
    if any(map(_INDEX.fullmatch, task.names)) or not _INDEX.fullmatch(bare):
        return None
    return int(bare) if 0 <= int(bare) < (task.classes or 0) else None


def _parse_number(text: str) -> float | None:
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
