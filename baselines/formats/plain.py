"""The task's texts, unchanged."""

from __future__ import annotations

from . import Format

__all__ = ["Format"]
