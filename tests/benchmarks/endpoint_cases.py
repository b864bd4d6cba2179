"""What the tests of endpoints ask: words to be said, of a model at a server on loopback (`llm_server`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from farshift.benchmarks.adapters.openai_endpoint import from_spec
from farshift.benchmarks.definition import PromptPin
from farshift.benchmarks.model import Task
from farshift.benchmarks.prompting.prompt import Prompt

TASK = Task("sequence", ("word",), "said")
KEY = "secret-of-many-letters"
"""The key that the fixture `server` sets."""


def prompt(**changes: Any) -> Prompt:
    settled = {"instruction": "Say it.", "example": "", "query": "Word: {word}", "max_tokens": 7}
    settled |= {"extraction": {"name": "whole", "version": 1}}
    return Prompt(PromptPin.model_validate(settled | changes), TASK, ())


def words(*texts: str) -> dict[str, np.ndarray]:
    return {"word": np.array(texts, object)}


def model(server: Any, seed: int = 0, asked_by: Prompt | None = None, name: str = "tiny", **options: str) -> Any:
    """A model at a server, or at its URL."""
    url = server if isinstance(server, str) else server.url
    asked_by = asked_by or prompt()
    return from_spec(f"{name}@{url}", options)(seed, asked_by.task, "cpu", asked_by)
