"""Scratchpads: the network writes the steps of a computation before the answer.

Nye et al. 2021 (arXiv:2112.00114); the pieces of a step are those of Kazemnejad et al., NeurIPS 2023
(arXiv:2305.19466), appendix D: its input, computation, output, intermediate variables and the remaining input, each
switched on or off by the setting `pieces`. A step reads `input : computation = output ( carried ) | remaining ;`, and
after the last one comes `=>` and the answer.

The computation is found from the training rows: the first of `_computations` that gives the answers of all of them.
Test inputs are left unchanged: the steps are the network's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from . import Texts, WordFormat
from ._computations import COMPUTATIONS, Computation, Step, Words

ANSWER = "=>"
PIECES = "icovr"
"""input, computation, output, intermediate variables, remaining input."""


class Format(WordFormat):
    def __init__(self, task: Task, train: Columns, settings: Mapping[str, Any]) -> None:
        """`ModelError` for unknown pieces, and if no computation fits every training row."""
        super().__init__(task, train, settings)
        self.pieces: str = settings["pieces"]
        if not self.pieces or set(self.pieces) - set(PIECES):
            raise ModelError(f"setting pieces = {self.pieces!r}: use letters of {PIECES!r}, such as 'io'")
        if ANSWER in self.vocabulary(train):
            raise ModelError(f"format scratchpad: the training texts contain {ANSWER!r}, which marks the answer")
        self.name, self.way = self._find_computation(train)
        self._computation: Computation = COMPUTATIONS[self.name]

    def _find_computation(self, train: Columns) -> tuple[str, str]:
        """The first computation and form of the answer that every training row agrees with."""
        rows = [
            (self.words(text), self.words(answer))
            for text, answer in zip(train[self.task.inputs[0]], train[self.task.label], strict=True)
        ]
        for name, computation in COMPUTATIONS.items():
            ways: set[str] | None = None
            for words, answer in rows:
                worked = computation(words)
                matching_ways = (
                    set() if worked is None else {way for way, result in worked.answers.items() if result == answer}
                )
                ways = matching_ways if ways is None else ways & matching_ways
                if not ways:
                    break
            if ways:
                return name, min(ways)
        raise ModelError(
            f"format scratchpad: none of the computations {', '.join(COMPUTATIONS)} gives the answers of all training "
            "rows: choose another format"
        )

    def format_targets(self, texts: Texts, answers: Texts) -> Texts:
        return [
            self._format_target(self.words(text), self.words(answer))
            for text, answer in zip(texts, answers, strict=True)
        ]

    def _format_target(self, words: Words, answer: Words) -> str:
        worked = self._computation(words)
        if worked is None or worked.answers[self.way] != answer:
            raise ModelError(
                f"format scratchpad: {self.name} does not give the answer to {self.text(words)!r}: "
                "choose another format"
            )
        written = [word for step in worked.steps for word in self._written(step)]
        return " ".join([*written, ANSWER, *answer])

    def _written(self, step: Step) -> Words:
        parts = {
            "i": step.input,
            "c": [":", *step.computation],
            "o": ["=", *step.output],
            "v": ["(", *step.carried, ")"],
            "r": ["|", *step.remaining],
        }
        return [word for piece in PIECES if piece in self.pieces for word in parts[piece]] + [";"]

    def answer(self, written: str) -> str:
        """The text after the last `=>`; empty if the network did not write an answer."""
        words = written.split()
        if ANSWER not in words:
            return ""
        return self.text(words[len(words) - words[::-1].index(ANSWER) :])
