"""A text as a pretrained model's token ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...benchmarks.adapters._hf_quiet import quiet
from ...benchmarks.adapters._hf_tokens import pad_token, window
from ...benchmarks.adapters.hugging_face import from_spec
from ...benchmarks.model import Columns, Task
from ...benchmarks.parsing import named_errors
from ...core.errors import ModelError
from .encoding import PAD, ClassEncoding, SequenceEncoding, Sizes, encoding


def encoding_by(task: Task, train: Columns, settings: Mapping[str, Any]) -> ClassEncoding | SequenceEncoding:
    """The encoding of `task` that the settings ask for, learned from `train`."""
    if task.type == "classification" and settings["inputs"] == "tokens":
        return TokenEncoding(task, train, str(settings.get("weights", "")))
    return encoding(task, train, settings)


class TokenEncoding(ClassEncoding):
    """One text by the tokenizer that lies beside a model's weights, cut off at the model's window. Ids are one more
    than the tokenizer's, padded with PAD (0), so that no real token is taken for padding; labels as they are."""

    def __init__(self, task: Task, train: Columns, weights: str) -> None:
        """weights: as `FrozenColumns` takes them."""
        from transformers import AutoConfig, AutoTokenizer

        if len(task.inputs) != 1 or any(not isinstance(text, str) for text in train[task.inputs[0]][:1]):
            raise ModelError(f"setting inputs = 'tokens' is of one text, and this task has {', '.join(task.inputs)}")
        assert task.classes, "a classification task says how many classes it has"
        folder = from_spec(weights, {}).folder
        with named_errors(f"loading the tokenizer of {weights}"), quiet():
            config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        pad_token(self.tokenizer)
        self.task, self.window = task, window(config, self.tokenizer, None)
        self.streams, self.pictures = "", []
        self.sizes = Sizes(task.classes, source=len(self.tokenizer) + 1)

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """Token ids (n, T) int64, and no numbers, (n, 0)."""
        texts = list(batch[self.task.inputs[0]])
        with quiet():
            ids = (
                []
                if not texts
                else self.tokenizer(
                    texts, truncation=self.window is not None, max_length=self.window, return_attention_mask=False
                )["input_ids"]
            )
        found = np.full((len(texts), max((len(row) for row in ids), default=1) or 1), PAD, np.int64)
        for place, row in enumerate(ids):
            found[place, : len(row)] = np.asarray(row, np.int64) + 1
        return torch.from_numpy(found), torch.zeros(len(texts), 0)
