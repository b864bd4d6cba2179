"""Token accuracy over some token types: the share of correct tokens among all tokens of the types in `count`.

Every token of the expected sequence has a type: the word at the same position of the field `types`. All tokens have
equal weight, regardless of their row. It is the accuracy on class and method names of Py150-WILDS, `count` = ["class",
"method"], where a model predicts the next token at each position: Koh et al., "WILDS" (ICML 2021). Checked against
`eval` in wilds/datasets/py150_dataset.py of p-lambda/wilds.

A token missing from the prediction is wrong, as is every token of a row without an answer; superfluous tokens are
ignored. NaN if no token is of these types.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from ...core.errors import BadData
from ._base import Answers, Columns, State, StrictOptions, Task, Values, add_states, split_tokens
from .token_accuracy import chance as chance

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

merge = add_states


class Options(StrictOptions):
    """The field with the token types, and the types that count."""

    types: str
    count: list[str] = Field(min_length=1)


OPTIONS = Options


def fields(options: Options) -> tuple[str, ...]:
    """Return the field with the token types."""
    return (options.types,)


def update(answers: Answers, truth: Values, task: Task, columns: Columns, options: Options) -> State:
    """Count the `right` tokens and all tokens of these types, int64; raises `BadData` unless each token has one
    type."""
    counted, right, total = frozenset(options.count), 0, 0
    for given, expected, types in zip(answers.prediction, truth, columns[options.types], strict=True):
        true_tokens, kinds = split_tokens(expected, task), types.split()
        if len(true_tokens) != len(kinds):
            raise BadData(f"{options.types!r}: {len(kinds)} types for {len(true_tokens)} tokens: {expected[:60]!r}")
        at = [position for position, kind in enumerate(kinds) if kind in counted]
        predicted_tokens = () if given is None else split_tokens(given, task)
        right += sum(
            position < len(predicted_tokens) and predicted_tokens[position] == true_tokens[position] for position in at
        )
        total += len(at)
    return {"right": np.array(right), "tokens": np.array(total)}


def compute(state: State, options: Options) -> float:
    """Compute the share of these tokens that are right; NaN if there are none."""
    return float(state["right"] / state["tokens"]) if state["tokens"] else float("nan")
