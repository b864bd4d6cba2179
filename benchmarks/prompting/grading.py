"""Grading: answers extracted from a language model's output by a benchmark's prompt, scored by its primary metric.

Outputs from this harness and from other runners (through an exported task) are graded by the same code, so that their
scores are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.documents import read_json
from ...core.errors import BadDefinition
from ..answers import Answers, Failed
from ..benchmark import Benchmark
from ..definition import PromptPin
from ..metrics import Metric, find_metric
from ..model import Task
from ..parsing import BatchLocation, read_answer
from .prompt import Prompt

FORMAT = 1

_LOST = Failed("no answer could be read")


def extract_answers(texts: Sequence[str | None], prompt: Prompt, part: str, row_ids: NDArray[np.uint64]) -> Answers:
    """Extract predictions from n outputs for the n rows of these ids; a row without an output or a prediction fails."""
    predictions = [_LOST if text is None else _extract_prediction(text, prompt) for text in texts]
    return read_answer(predictions, BatchLocation(part, 0, row_ids), prompt.task)


def _extract_prediction(text: str, prompt: Prompt) -> Any:
    # JSON may have half of a surrogate pair, which cannot be encoded in UTF-8 and so not stored.
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return _LOST
    prediction = prompt.read(text)
    return _LOST if prediction is None else prediction


@dataclass(frozen=True)
class Grader:
    """Grades one output at a time by a benchmark's extraction and primary metric, without the benchmark's data.

    metric: a metric that is a mean over rows.
    """

    benchmark: str
    entry_identity: str
    prompt: Prompt
    metric: Metric

    @classmethod
    def of(cls, benchmark: Benchmark, prompt: Prompt) -> Grader:
        return cls(benchmark.name, benchmark.identity("full"), prompt, benchmark.metrics[0])

    @classmethod
    def read(cls, path: Path) -> Grader:
        """Read a grader from a file with the content of `record`. Raises `BadDefinition` for another format, or for a
        metric or an extraction that is not available in that version."""
        card = read_json(path, dict, str(path))
        if card["format"] != FORMAT:
            raise BadDefinition(f"{path}: format {card['format']!r} is not {FORMAT}: export the benchmark again")
        task = card["task"] | {"inputs": tuple(card["task"]["inputs"]), "names": tuple(card["task"]["names"])}
        prompt = Prompt(PromptPin.model_validate(card["prompt"]), Task(**task), ())
        measure = find_metric(card["metric"]["name"], card["metric"]["version"])
        return cls(card["benchmark"], card["entry_identity"], prompt, measure)

    def record(self) -> dict[str, Any]:
        """Return all that determines a grade, as plain JSON."""
        return {
            "format": FORMAT,
            "benchmark": self.benchmark,
            "entry_identity": self.entry_identity,
            "prompt": self.prompt.pin.model_dump(),
            "task": asdict(self.prompt.task),
            "metric": {"name": self.metric.name, "version": self.metric.version},
        }

    def value(self, text: str, label: str | int) -> float:
        """Return the metric for a row with the true label `label` (a class by its index) and the output `text`."""
        assert self.metric.per_row is not None
        task = self.prompt.task
        truth = np.array([label], object if task.type == "sequence" else np.int64)
        answers = extract_answers([text], self.prompt, "text", np.zeros(1, np.uint64)).fill_missing(truth, task)
        return float(self.metric.per_row(answers, truth, task)[0])
