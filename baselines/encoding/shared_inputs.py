"""Check whether a second pretrained model can read the inputs encoded for a first one.

Images can always be shared: each network resizes and normalises them itself. Token ids and samples depend on the
tokenizer or the processor.
"""

from __future__ import annotations

from ...benchmarks.adapters._transformers import (
    compute_context_length,
    read_audio_processor,
    read_config,
    read_tokenizer,
)
from ...core.errors import ModelError
from ...loaders.batching.tokens import load_tokenizer
from .checkpoint import find_folder


def check_shared(weights: str, other: str, inputs: str, setting: str) -> None:
    """`ModelError` if `other` encodes tokens or audio differently from `weights`, for which rows are encoded. inputs:
    the setting of that name. setting: the one that names `other`."""
    if inputs == "tokens":
        (ids, most), (other_ids, other_most) = _read_tokenizer(weights), _read_tokenizer(other)
        if ids != other_ids:
            raise ModelError(f"setting {setting}: {other} and {weights} read one text with different tokenizers")
        if other_most is not None and (most is None or other_most < most):
            raise ModelError(
                f"setting {setting}: {other} reads {other_most} tokens at most, and texts are encoded for {weights}, "
                f"which reads {most or 'any number'}: give a model with as long a window"
            )
    if inputs == "sounds":
        own, others = (read_audio_processor(find_folder(spec).folder) for spec in (weights, other))
        for name in ("sampling_rate", "do_normalize"):
            if getattr(own, name, None) != getattr(others, name, None):
                raise ModelError(
                    f"setting {setting}: {other} has {name} = {getattr(others, name, None)}, and audio is encoded "
                    f"for {weights}, which has {getattr(own, name, None)}"
                )


def _read_tokenizer(weights: str) -> tuple[str, int | None]:
    """A digest of a model's tokenizer, and the most tokens that the model reads."""
    folder = find_folder(weights).folder
    own = read_tokenizer(folder)
    return load_tokenizer(own).digest, compute_context_length(read_config(folder), own, None)
