"""Search for canaries (benchmarks/canary.py) in a corpus and in what a model writes: a canary that is found shows
that the benchmark's data were in the corpus or in the training data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.canary import TEXT, make_guid
from ...benchmarks.model import Model
from ...core.errors import FarshiftError, ModelError
from ...splits.schema import Schema

_KNOWN = 16
"""Hexadecimal digits of the GUID that are shown to a model; it should continue with the other sixteen."""

_MIN_DIGITS = 8
"""Number of consecutive digits of the hidden half that counts as found: guessed with probability 1 in 2^32."""


def search_texts(benchmark: Benchmark, texts: Iterable[str]) -> dict[str, Any]:
    """Count the texts that contain the canary (with or without dashes, any case); list the first of them, from 0."""
    canary = make_guid(benchmark)
    bare = canary.replace("-", "")
    matches, first, count = 0, None, 0
    for count, text in enumerate(texts, 1):
        low = text.lower()
        if canary in low or bare in low:
            matches += 1
            first = count - 1 if first is None else first
    return {"probe": "canary in texts", "benchmark": benchmark.name, "texts": count, "found": matches, "first": first}


def probe_continuation(benchmark: Benchmark, schema: Schema, model: Model) -> dict[str, Any]:
    """Check whether a text-to-text model continues the canary when half of the GUID is an input of the benchmark's
    task. Raises `FarshiftError` if the task's inputs or outputs are not text."""
    task = benchmark.task
    if task.type != "sequence" or len(task.inputs) != 1 or schema[task.inputs[0]].type != "string":
        raise FarshiftError(f"{benchmark.name} is not a text-to-text task, which the canary probe needs")
    digits = make_guid(benchmark).replace("-", "")
    known, hidden = digits[:_KNOWN], digits[_KNOWN:]
    prompt = f"{TEXT} {benchmark.name} {known[:8]}-{known[8:12]}-{known[12:]}-"
    answer = model.predict({task.inputs[0]: np.array([prompt], object)})
    reply = _get_text(answer)
    bare = "".join(letter for letter in reply.lower() if letter in "0123456789abcdef")
    knows = any(hidden[start : start + _MIN_DIGITS] in bare for start in range(len(hidden) - _MIN_DIGITS + 1))
    return {"probe": "canary continued", "benchmark": benchmark.name, "continued": knows, "said": reply[:200]}


def _get_text(answer: Any) -> str:
    values = list(getattr(answer, "prediction", answer))
    if len(values) != 1:
        raise ModelError(f"the model returned {len(values)} predictions for one text")
    return values[0] if isinstance(values[0], str) else ""
