"""A text classifier of transformers: class probabilities for one text, or for a pair of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import ModelError
from ..answers import Answers
from ..model import Columns, Task
from ._transformers import compute_context_length, find_pad_token, silence_transformers


class TextClassifier:
    """A network with a classification head. A text over the model's context window is truncated, as in training.

    Two inputs are a pair, in the task's order; three or more, or one that is not text, raise `ModelError`.
    """

    def __init__(
        self, network: Any, tokenizer: Any, task: Task, name: str, batch_size: int, max_length: int | None
    ) -> None:
        if len(task.inputs) > 2:
            raise ModelError(
                f"model hf:{name} reads a text or a pair of texts, and this task has {len(task.inputs)} inputs"
            )
        self.network, self.tokenizer, self.task, self.batch_size = network, tokenizer, task, batch_size
        self.outputs = match_outputs(network.config.id2label, task, name)
        self.window = compute_context_length(network.config, tokenizer, max_length)
        network.config.pad_token_id = find_pad_token(tokenizer)

    def predict(self, batch: Columns) -> Answers:
        """Return predictions with class probabilities. Texts are batched by length."""
        import torch

        texts = [self._texts(name, batch[name]) for name in self.task.inputs]
        scores = np.empty((len(texts[0]), len(self.outputs)), np.float32)
        order = np.argsort([sum(map(len, row)) for row in zip(*texts, strict=True)], kind="stable")
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            with silence_transformers(), torch.no_grad():
                encoded = self.tokenizer(
                    *([column[row] for row in rows] for column in texts),
                    padding=True,
                    truncation=self.window is not None,
                    max_length=self.window,
                    return_tensors="pt",
                )
                logits = self.network(**encoded.to(self.network.device)).logits[:, self.outputs]
            scores[rows] = logits.double().softmax(dim=1).float().cpu().numpy()
        return Answers.all_given(scores.argmax(axis=1).astype(np.int64), scores)

    def _texts(self, name: str, values: Any) -> list[str]:
        if values.dtype != object or not all(isinstance(value, str) for value in values):
            raise ModelError(f"input {name!r} is not text, and a text classifier reads only text")
        return list(values)


def match_outputs(labels: Mapping[int, str], task: Task, model: str) -> list[int]:
    """Return, for each class of the task, the index of the model's output.

    By name, ignoring case, if task and model both name their classes (additional outputs of the model are left out of
    the softmax); else by position. `ModelError` if neither fits.
    """
    known = [str(labels[index]).strip().casefold() for index in sorted(labels)]
    unnamed = all(label in (str(index), f"label_{index}") for index, label in enumerate(known))
    class_names = [name.strip().casefold() for name in task.names]
    if class_names and not unnamed:
        if len(set(known)) < len(known) or not set(class_names) <= set(known):
            raise ModelError(
                f"model hf:{model} has the labels {', '.join(known)}, and the task the classes "
                f"{', '.join(class_names)}: "
                "give its config an id2label with the task's names"
            )
        return [known.index(name) for name in class_names]
    if len(known) != task.classes:
        raise ModelError(f"model hf:{model} has {len(known)} classes, and the task has {task.classes}")
    return list(range(len(known)))
