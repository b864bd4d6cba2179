"""What every model of transformers needs: its configuration, tokenizer and processor from a folder, in silence.

No code that comes with a model is run, and nothing is downloaded.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from ...core.errors import ModelError
from ..parsing import wrap_user_errors

FILE = "preprocessor_config.json"


def read_config(folder: Path) -> Any:
    """Read the configuration of a model's folder; `ModelError` for one that transformers cannot read."""
    return _read("AutoConfig", folder, f"reading {folder / 'config.json'}")


def read_tokenizer(folder: Path) -> Any:
    """Read the tokenizer of a model's folder; `ModelError` for a folder without one."""
    return _read("AutoTokenizer", folder, f"loading the tokenizer of {folder}")


def read_audio_processor(folder: Path) -> Any:
    """Read the processor of an audio model's folder; `ModelError` for a folder without it."""
    if not (folder / FILE).is_file():
        raise ModelError(f"model {folder.name} has no {FILE}: save its processor beside it")
    return _read("AutoFeatureExtractor", folder, f"reading the processor of {folder}")


def _read(kind: str, folder: Path, what: str) -> Any:
    with wrap_user_errors(what), silence_transformers():
        reader = getattr(import_module("transformers"), kind)
        return reader.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


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


_NO_LIMIT = 10**9
"""A tokenizer without a limit reports 10^30."""


def compute_context_length(config: Any, tokenizer: Any, max_length: int | None) -> int | None:
    """The maximum number of tokens: the minimum over positions, tokenizer and the user's limit."""
    limits = [getattr(config, "max_position_embeddings", None), tokenizer.model_max_length, max_length]
    return min((limit for limit in limits if isinstance(limit, int) and 0 < limit < _NO_LIMIT), default=None)


def find_pad_token(tokenizer: Any) -> int:
    """The id of the padding token; for a tokenizer without one, that of the end of text (it is masked)."""
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return int(tokenizer.pad_token_id)
