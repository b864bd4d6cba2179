"""Three steps with rows of another place beside the toy's, without labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import toy
from .steps import data, steps, training


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps.py`; of several stages of training, three steps of each."""
    given = data()
    given = replace(given, unlabelled=(given.inputs[0], toy.inputs(2.0)))
    count = toy.STEPS * int(settings.get("members", 1))
    return steps(training(name, settings, given, count), count)
