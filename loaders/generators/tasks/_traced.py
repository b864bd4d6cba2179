"""Answers behind a trace of the steps that led to them."""

from __future__ import annotations

from collections.abc import Sequence

from ._contract import Examples


def traced(inputs: Sequence[str], answers: Sequence[str], steps: Sequence[Sequence[str]], trace: bool) -> Examples:
    """The answers alone, or behind their steps: "step ; step = answer"."""
    if not trace:
        return Examples(inputs, answers)
    return Examples(inputs, [f"{' ; '.join(done)} = {answer}" for done, answer in zip(steps, answers, strict=True)])
