"""No augmentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...benchmarks.model import Columns, Task
from . import More

SETTINGS: dict[str, Any] = {}


def more(task: Task, rows: Columns, settings: Mapping[str, Any]) -> More:
    return {}, []
