"""Answers after a trace of the steps that lead to them."""

from __future__ import annotations

from collections.abc import Sequence

from ._contract import Examples


def make_traced_examples(
    inputs: Sequence[str], answers: Sequence[str], steps: Sequence[Sequence[str]], trace: bool
) -> Examples:
    """Make examples with the answers alone, or after their steps: "step ; step = answer"."""
    if not trace:
        return Examples(inputs, answers)
    return Examples(
        inputs, [f"{' ; '.join(row_steps)} = {answer}" for row_steps, answer in zip(steps, answers, strict=True)]
    )
