"""The installed version."""

from __future__ import annotations


def get_version() -> str:
    """The installed version of Farshift."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        # None while pip is at it: a run that ends just then is not lost for it.
        return installed("farshift") or "unknown"
    except PackageNotFoundError:
        return "unknown"
