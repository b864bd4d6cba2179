"""Reversed answers: the last token first.

Carries run from the last digit to the first, so a reversed sum needs no look-ahead (Lee et al., ICLR 2024,
arXiv:2307.03381; Zhou et al., ICLR 2024, arXiv:2310.16028, where it makes addition a short RASP-L program).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...benchmarks.model import Columns, Task
from . import Format as Base
from . import Texts


class Format(Base):
    """Token i of an output no longer belongs to token i of the input, so the task is not aligned."""

    def __init__(self, task: Task, train: Columns, settings: Mapping[str, Any]) -> None:
        super().__init__(task, train, settings)
        self.task = replace(task, aligned=False)

    def format_targets(self, texts: Texts, answers: Texts) -> Texts:
        return [self.answer(answer) for answer in answers]

    def answer(self, written: str) -> str:
        """Reverse the tokens; applied twice, the text is unchanged."""
        return written[::-1] if self.task.tokens == "character" else " ".join(reversed(written.split()))
