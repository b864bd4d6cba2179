"""Silence progress bars and advice of transformers and the Hub's client."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Within the context transformers logs errors only; its settings are restored afterwards."""
    logging = import_module("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with (
        show_hub_progress(False),
        warnings.catch_warnings(),
    ):  # outermost: switching the bars of transformers switches these too
        warnings.simplefilter("ignore")
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()


@contextmanager
def show_hub_progress(enabled: bool) -> Iterator[None]:
    """Set whether the Hub's client draws progress bars within the context. Bars that the user disabled stay off."""
    bars = import_module("huggingface_hub.utils")
    were_off = bars.are_progress_bars_disabled()
    if not enabled:
        bars.disable_progress_bars()
    try:
        yield
    finally:
        if were_off:
            bars.disable_progress_bars()
        else:
            bars.enable_progress_bars()
