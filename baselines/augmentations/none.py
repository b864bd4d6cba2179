"""No augmentation."""

from typing import Any

SETTINGS: dict[str, Any] = {}
