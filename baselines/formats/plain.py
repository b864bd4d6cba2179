"""The task's texts, unchanged."""

from . import Format

__all__ = ["Format"]
