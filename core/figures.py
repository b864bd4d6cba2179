"""Figures with Farshift's own Matplotlib settings, whatever the user's are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .errors import MissingExtra


@contextmanager
def use_plot_settings(settings: dict[str, Any]) -> Iterator[None]:
    """These settings of matplotlib, whatever the user's are, while the context lasts. `MissingExtra` without it."""
    try:
        from matplotlib.style import context
    except ImportError as error:
        raise MissingExtra("plotting", "plot") from error
    with context(settings, after_reset=True):
        yield
