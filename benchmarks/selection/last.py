"""last: no selection. The last checkpoint of the first setting, regardless of validation scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import SelectionData

if TYPE_CHECKING:
    from ..benchmark import Benchmark

PART = ""


def unavailable(benchmark: Benchmark) -> str:
    return ""


def ballot(benchmark: Benchmark) -> SelectionData | None:
    """Return None: no validation data is used."""
    return None
