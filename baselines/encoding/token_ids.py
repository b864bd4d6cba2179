"""A text as a pretrained model's token ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ...benchmarks.adapters._hf_logging import silence_transformers
from ...benchmarks.adapters._hf_tokens import compute_context_length, find_pad_token
from ...benchmarks.model import Columns, Task
from ...benchmarks.parsing import wrap_user_errors
from ...core.errors import ModelError
from ...loaders.batching.tokens import load_tokenizer, tokenise_texts
from .audio_samples import AudioEncoding
from .checkpoint import find_folder
from .encoding import PAD, Encoded, RowEncoding, SequenceEncoding, Sizes, make_encoding
from .log_mel import SpectrogramEncoding, is_audio_task
from .targets import make_targets
from .token_rows import TokenRows


def choose_encoding(task: Task, train: Columns, settings: Mapping[str, Any]) -> RowEncoding | SequenceEncoding:
    """Make the encoding of `task` that the settings select, learned from `train`."""
    if task.type != "sequence" and settings["inputs"] == "tokens":
        return TokenEncoding(task, train, str(settings.get("weights", "")))
    if task.type != "sequence" and settings["inputs"] == "sounds":
        return AudioEncoding(task, train, str(settings.get("weights", "")), float(settings.get("seconds", 0)))
    if task.type != "sequence" and settings["inputs"] == "auto" and is_audio_task(task, train):
        return SpectrogramEncoding(task, train)
    return make_encoding(task, train, settings)


class TokenEncoding(RowEncoding):
    """One text by the tokenizer that is stored with a model's weights, truncated to the model's window. Ids are the
    tokenizer's plus 1, padded with PAD (0), so that no real token is mistaken for padding. Labels are unchanged.

    Training rows are tokenised once, into the cache (`loaders/batching/tokens.py`)."""

    def __init__(self, task: Task, train: Columns, weights: str) -> None:
        """weights: see `FrozenColumns`."""
        from transformers import AutoConfig, AutoTokenizer

        if len(task.inputs) != 1 or any(not isinstance(text, str) for text in train[task.inputs[0]][:1]):
            raise ModelError(f"setting inputs = 'tokens' needs one text input; this task has {', '.join(task.inputs)}")
        location = find_folder(weights)
        with wrap_user_errors(f"loading the tokenizer of {weights}"), silence_transformers():
            config = AutoConfig.from_pretrained(location.folder, local_files_only=True, trust_remote_code=False)
            own = AutoTokenizer.from_pretrained(location.folder, local_files_only=True, trust_remote_code=False)
        find_pad_token(own)
        self.task, self.targets, self.window = (
            task,
            make_targets(task, train),
            compute_context_length(config, own, None),
        )
        if getattr(own, "backend_tokenizer", None) is None:
            raise ModelError(f"weights {weights}: their tokenizer has no fast form (tokenizer.json): give others")
        self.pinned = replace(load_tokenizer(own, self.window), name=location.name)
        self.streams, self.images = "", []
        self.sizes = Sizes(self.targets.outputs, source=len(own) + 1)

    @property
    def decoder(self) -> str:
        return ""

    @property
    def tokenizer(self) -> str:
        """What determines the ids: the library's version, and a prefix of the digest of everything else."""
        import tokenizers

        return f"tokenizers {tokenizers.__version__}, {self.pinned.digest[:16]}"

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """Token ids (n, T) int64, and no numbers, (n, 0)."""
        rows = self.pinned.ids([str(text) for text in batch[self.task.inputs[0]]])
        ids = np.full((len(rows), max(map(len, rows), default=1) or 1), PAD, np.int64)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = np.asarray(row, np.int64) + 1
        return torch.from_numpy(ids), torch.zeros(len(rows), 0)

    def rows(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """As `inputs`, through the cache, and ragged: a batch is padded when it is drawn."""
        rows = TokenRows.of(tokenise_texts(batch[self.task.inputs[0]], self.pinned))
        return cast(Tensor, rows), torch.zeros(len(rows), 0)

    def encode(self, rows: Columns) -> Encoded:
        """As for any row; `lengths` are those of the texts, in tokens."""
        encoded = super().encode(rows)
        return replace(encoded, lengths=cast(TokenRows, encoded.inputs[0]).lengths)
