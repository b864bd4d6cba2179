"""Three steps, and what heads that vote answer before them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import answers
from .steps import steps, training


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps.py` and `answers.py`."""
    return steps(training(name, settings)) | answers.ours(name, settings)
