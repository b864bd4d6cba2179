"""The installed version."""

from __future__ import annotations


def version() -> str:
    """The installed version of Farshift."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("farshift")
    except PackageNotFoundError:
        return "unknown"
