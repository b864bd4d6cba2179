"""No augmentation."""

from __future__ import annotations

from typing import Any

SETTINGS: dict[str, Any] = {}
