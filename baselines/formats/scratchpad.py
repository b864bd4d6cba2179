"""Scratchpads: the network writes the steps of a computation before the answer.

Nye et al. 2021 (arXiv:2112.00114); the pieces of a step are those of Kazemnejad et al., NeurIPS 2023
(arXiv:2305.19466), appendix D: its input, computation, output, intermediate variables and the remaining input, each
switched on or off by the setting `pieces`. A step reads `input : computation = output ( carried ) | remaining ;`, and
after the last one comes `=>` and the answer.

The computation is found from the training rows: the first of `COMPUTATIONS` that gives the answers of all of them.
Test inputs are left unchanged: the steps are the network's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from . import Texts, WordFormat

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


Words = list[str]


@dataclass(frozen=True)
class Step:
    """One step, each part as words: what it reads, what it computes, the result, what it carries over to the next step,
    and the remaining input."""

    input: Words
    computation: Words
    output: Words
    carried: Words
    remaining: Words


@dataclass(frozen=True)
class WorkedExample:
    """A computation carried out on one input. `answers`: the forms of the result that a task may use, by name."""

    steps: list[Step]
    answers: dict[str, Words]


Computation = Callable[[Words], WorkedExample | None]


def copy_words(words: Words) -> WorkedExample:
    """Copy each word, from the first to the last."""
    steps = [Step([word], [word], [word], [], words[index + 1 :]) for index, word in enumerate(words)]
    return WorkedExample(steps, {"whole": list(words)})


def reverse_words(words: Words) -> WorkedExample:
    """Copy each word, from the last to the first."""
    last = range(len(words) - 1, -1, -1)
    steps = [Step([words[index]], [words[index]], [words[index]], [], words[:index]) for index in last]
    return WorkedExample(steps, {"whole": words[::-1]})


def compute_running_sum(modulus: int, words: Words) -> WorkedExample | None:
    """The running sum modulo `modulus` of numbers below it, with or without plus signs between them."""
    plain = "+" not in words
    items = words if plain else words[::2]
    if not items or (not plain and (len(words) % 2 == 0 or any(word != "+" for word in words[1::2]))):
        return None
    if not all(_is_digit(word) and int(word) < modulus for word in items):
        return None
    steps, total = [], 0
    for index, word in enumerate(items):
        computation = [str(total), "+", word]
        total = (total + int(word)) % modulus
        rest = words[index + 1 :] if plain else words[2 * index + 2 :]
        steps.append(Step([word], computation, [str(total)], [str(total)], rest))
    sums = [step.output[0] for step in steps]
    return WorkedExample(steps, {"last": sums[-1:], "whole": sums})


def add_numbers(words: Words) -> WorkedExample | None:
    """Add two numbers digit by digit, from the right, with a carry; a final step writes the last carry."""
    if words.count("+") != 1 or not all(_is_digit(word) for word in words if word != "+"):
        return None
    middle = words.index("+")
    left, right = words[:middle], words[middle + 1 :]
    if not left or not right:
        return None
    places = max(len(left), len(right))
    steps, carry = [], 0
    for position in range(places):
        a, b = (side[-1 - position] if position < len(side) else "0" for side in (left, right))
        computation = [a, "+", b, "+", str(carry)]
        carry, digit = divmod(int(a) + int(b) + carry, 10)
        rest = [*left[: max(0, len(left) - position - 1)], "+", *right[: max(0, len(right) - position - 1)]]
        steps.append(Step([a, b], computation, [str(digit)], [str(carry)], rest))
    steps.append(Step([], [str(carry)], [str(carry)], [], []))
    backwards = [step.output[0] for step in steps]
    padded = backwards[::-1]
    short = list(str(int("".join(padded))))
    return WorkedExample(steps, {"padded": padded, "shortest": short, "padded, last digit first": backwards})


_OPERATORS: dict[str, Callable[[list[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda values: (sorted(values)[(len(values) - 1) // 2] + sorted(values)[len(values) // 2]) // 2,
    "[SM": lambda values: sum(values) % 10,
}


def evaluate_list_operations(words: Words) -> WorkedExample | None:
    """ListOps (Nangia and Bowman, NAACL 2018, arXiv:1804.06028): replace the first bracket without inner brackets by
    its value until a value is left."""
    rest, steps = list(words), []
    while len(rest) > 1:
        bracket = next(_iterate_innermost_brackets(rest), None)
        if bracket is None:
            return None
        start, end = bracket
        operator, values = rest[start], rest[start + 1 : end]
        if operator not in _OPERATORS or not values or not all(_is_digit(word) for word in values):
            return None
        value = str(_OPERATORS[operator]([int(word) for word in values]))
        read = rest[start : end + 1]
        rest = [*rest[:start], value, *rest[end + 1 :]]
        steps.append(Step(read, read, [value], [value], rest))
    return WorkedExample(steps, {"last": rest}) if steps and _is_digit(rest[0]) else None


def _iterate_innermost_brackets(words: Words) -> Iterator[tuple[int, int]]:
    """Where each bracket without inner brackets begins and ends."""
    start = -1
    for index, word in enumerate(words):
        if word.startswith("["):
            start = index
        elif word == "]" and start >= 0:
            yield start, index
            start = -1


def _is_digit(word: str) -> bool:
    return len(word) == 1 and word in "0123456789"


COMPUTATIONS: dict[str, Computation] = {
    "copy": copy_words,
    "reverse": reverse_words,
    "running parity": lambda words: compute_running_sum(2, words),
    "running sum modulo 10": lambda words: compute_running_sum(10, words),
    "addition": add_numbers,
    "list operations": evaluate_list_operations,
}
"""In the order in which they are tried."""
