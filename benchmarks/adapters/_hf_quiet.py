"""transformers and the Hub's client without progress bars and advice in the wrong place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """While the context lasts transformers reports errors only; afterwards its settings are what they were."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with hub_bars(False), warnings.catch_warnings():  # outermost: switching bars of transformers switches these too
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
def hub_bars(shown: bool) -> Iterator[None]:
    """Whether the Hub's client draws progress bars while the context lasts. What the user switched off stays off."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    were_off = are_progress_bars_disabled()
    if not shown:
        disable_progress_bars()
    try:
        yield
    finally:
        (disable_progress_bars if were_off else enable_progress_bars)()
