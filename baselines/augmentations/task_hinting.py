"""Task hinting: a simpler task about the same inputs, mixed into the training rows.

Awasthi and Gupta, "Improving length-generalization in Transformers via task hinting", 2023 (arXiv:2310.00726): sorting
learned together with "which element comes next" generalises from 20 to 100 elements, while filling in and counting help
less. Here each is made from a row's input and its answer alone, for any task; the setting `hint_task` is one of

- `successor`: `input → word` asks for the word that follows the last `word` in the answer;
- `fill`: `input □ answer`, one of its words being `□`, asks for that word;
- `count`: `input # word` asks how often the word stands in the answer, in decimal digits.

Which word is asked for is drawn by the row and the copy. No test input holds one of the marks, so the simpler task is
never asked of a trained network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...benchmarks.model import Columns, Task
from ...core.draws import key
from ...core.errors import ModelError
from . import More, text_field

SETTINGS: dict[str, Any] = {"copies": 1, "hint_task": "successor"}
"""copies: hints added for each row, at most. hint_task: which of the three."""

Words = list[str]
Hint = tuple[Words, Words]
"""What is appended to the input, and the answer."""


def successors(answer: Words) -> list[Hint]:
    last = {word: place for place, word in enumerate(answer)}
    return [(["→", word], [answer[place + 1]]) for word, place in last.items() if place + 1 < len(answer)]


def blanks(answer: Words) -> list[Hint]:
    return [(["□", *answer[:place], "□", *answer[place + 1 :]], [word]) for place, word in enumerate(answer)]


def counts(answer: Words) -> list[Hint]:
    return [(["#", word], list(str(answer.count(word)))) for word in dict.fromkeys(answer)]


HINTS: dict[str, tuple[str, Callable[[Words], Sequence[Hint]]]] = {
    "successor": ("→", successors),
    "fill": ("□", blanks),
    "count": ("#", counts),
}


def more(task: Task, rows: Columns, settings: Mapping[str, Any]) -> More:
    """Rows whose answer is too short to be asked about have no hint. `ModelError` for an unknown `hint_task`, for
    aligned tasks, whose answers are as long as their inputs, and where a training text holds the mark."""
    field = text_field(task, "task_hinting")
    if task.aligned:
        raise ModelError(
            "augmentation task_hinting: its answers are not as long as its inputs, and this task is aligned"
        )
    if settings["hint_task"] not in HINTS:
        raise ModelError(f"setting hint_task = {settings['hint_task']!r}: use {', '.join(HINTS)}")
    mark, hints = HINTS[settings["hint_task"]]
    split, joint = (list, "") if task.tokens == "character" else (str.split, " ")
    columns: dict[str, list[Any]] = {field: [], task.label: []}
    parents: list[int] = []
    for place, (text, answer) in enumerate(zip(rows[field], rows[task.label], strict=True)):
        if mark in text or mark in answer:
            raise ModelError(f"augmentation task_hinting: a training text holds {mark!r}, which marks its questions")
        words = split(text)
        for hint, asked in _drawn(hints(split(answer)), settings["copies"], place):
            columns[field].append(joint.join([*words, *hint]))
            columns[task.label].append(joint.join(asked))
            parents.append(place)
    return columns, parents


def _drawn(hints: Sequence[Hint], count: int, place: int) -> list[Hint]:
    """At most `count` of a row's hints, each once."""
    order = sorted(range(len(hints)), key=lambda one: key(f"task_hinting/{place}/{one}"))
    return [hints[one] for one in order[:count]]
