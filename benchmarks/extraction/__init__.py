"""Extraction rules: how a prediction is extracted from a language model's output; one file each, versioned.

An extraction module has

    VERSION: int                    raised by any change that extracts something else from some text
    TASKS: tuple[str, ...]          the task types whose answers it can read
    extract(text, task) -> prediction | None
    EARLIER: dict[int, extract]     optional: older versions, which benchmarks that name them still get

A prediction is a class (its index) for classification, a finite number for regression, a text for sequences; None
if the text has no answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from ...core.errors import BadDefinition
from ...core.plugins import load_module
from ..limits import MAX_TEXT
from ..model import Task

Prediction = str | int | float
Extract = Callable[[str, Task], Prediction | None]

_INDEX = re.compile(r"[-+]?[0-9]{1,18}")
"""A whole number in ASCII digits, short enough for every Python to read."""


def load_extraction(name: str, version: int, task: Task) -> Extract:
    """The extraction called `name`; raises if the version is not there, or if it does not support the task."""
    plugin = load_module("benchmarks/extraction", name, "extraction")
    versions: dict[int, Extract] = {**getattr(plugin, "EARLIER", {}), plugin.VERSION: plugin.extract}
    if version not in versions:
        raise BadDefinition(f"the extraction {name}@{version} is asked for; here it is version {plugin.VERSION}")
    if task.type not in plugin.TASKS:
        raise BadDefinition(f"the extraction {name} cannot read answers to {task.type} tasks")
    return versions[version]


def parse_prediction(text: str, task: Task) -> Prediction | None:
    """The prediction in `text`, which is an answer and nothing else; None if it is not a valid answer to the task.

    A class is given by its name (in any case), or by its index where no name is itself a number. White space around
    the answer, and the asterisks and full stop that chat models put there, do not count for classes and numbers.
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
