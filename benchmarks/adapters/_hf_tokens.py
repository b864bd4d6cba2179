"""Context length and padding token of transformers models."""

from __future__ import annotations

from typing import Any

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
