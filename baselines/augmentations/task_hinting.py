"""Task hinting: a simpler auxiliary task about the same inputs, mixed into the training rows.

Awasthi and Gupta, "Improving length-generalization in Transformers via task hinting", 2023 (arXiv:2310.00726): sorting
learned together with "which element comes next" generalises from 20 to 100 elements, while filling in and counting help
less. Here each is made from a row's input and its answer alone, for any task; the setting `hint_task` is one of

- `successor`: `input → word` asks for the word that follows the last `word` in the answer;
- `fill`: `input □ answer`, one of its words being `□`, asks for that word;
- `count`: `input # word` asks how often the word occurs in the answer, in decimal digits.

The word is drawn by the row and the copy. No test input contains one of the marks, so a trained network is never tested
on the simpler task.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...benchmarks.model import Columns, Task
from ...core.draws import derive_key
from ...core.errors import ModelError
from . import More, find_text_field

SETTINGS: dict[str, Any] = {"copies": 1, "hint_task": "successor"}
"""copies: the largest number of hints added for each row. hint_task: one of the three."""

Words = list[str]
Hint = tuple[Words, Words]
"""The text appended to the input, and the answer."""


def make_successor_hints(answer: Words) -> list[Hint]:
    last = {word: position for position, word in enumerate(answer)}
    return [(["→", word], [answer[position + 1]]) for word, position in last.items() if position + 1 < len(answer)]


def make_blank_hints(answer: Words) -> list[Hint]:
    return [(["□", *answer[:position], "□", *answer[position + 1 :]], [word]) for position, word in enumerate(answer)]


def make_count_hints(answer: Words) -> list[Hint]:
    return [(["#", word], list(str(answer.count(word)))) for word in dict.fromkeys(answer)]


HINTS: dict[str, tuple[str, Callable[[Words], Sequence[Hint]]]] = {
    "successor": ("→", make_successor_hints),
    "fill": ("□", make_blank_hints),
    "count": ("#", make_count_hints),
}


def more(task: Task, rows: Columns, settings: Mapping[str, Any]) -> More:
    """Rows whose answer is too short have no hint. `ModelError` for an unknown `hint_task`, for aligned tasks, whose
    answers are as long as their inputs, and if a training text contains the mark."""
    field = find_text_field(task, "task_hinting")
    if task.aligned:
        raise ModelError(
            "augmentation task_hinting: its answers do not have the length of its inputs, and this task is aligned"
        )
    if settings["hint_task"] not in HINTS:
        raise ModelError(f"setting hint_task = {settings['hint_task']!r}: use {', '.join(HINTS)}")
    mark, hints = HINTS[settings["hint_task"]]
    split, joint = (list, "") if task.tokens == "character" else (str.split, " ")
    columns: dict[str, list[Any]] = {field: [], task.label: []}
    parents: list[int] = []
    for index, (text, answer) in enumerate(zip(rows[field], rows[task.label], strict=True)):
        if mark in text or mark in answer:
            raise ModelError(f"augmentation task_hinting: a training text contains {mark!r}, which marks its hints")
        words = split(text)
        for hint, hint_answer in _draw_hints(hints(split(answer)), settings["copies"], index):
            columns[field].append(joint.join([*words, *hint]))
            columns[task.label].append(joint.join(hint_answer))
            parents.append(index)
    return columns, parents


def _draw_hints(hints: Sequence[Hint], count: int, row_index: int) -> list[Hint]:
    """At most `count` distinct hints of a row."""
    order = sorted(range(len(hints)), key=lambda index: derive_key(f"task_hinting/{row_index}/{index}"))
    return [hints[index] for index in order[:count]]
