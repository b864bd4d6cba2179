"""Formats: what a network reads and writes in place of a task's texts; one file each, its name the setting `format`.

A file has `class Format`, a subclass of the one here, and its citation. A format is learned from the training rows
only. It rewrites inputs wherever they are read and answers in training, and extracts the answer from the network's
output: predictions are always those of the task itself.

Settings that a format may read: `pieces` (for a scratchpad) and `hint_range` (the number of index hints).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ...benchmarks.model import Columns, Task
from ...core.plugins import load_module

Texts = Sequence[str] | NDArray[Any]

SPACE = "␣"
"""Replaces a space where single characters become words."""


class Format:
    """Leave texts unchanged.

    `task` is the task as the network sees it: whether it is aligned, and what its tokens are, may differ."""

    def __init__(self, task: Task, train: Columns, settings: Mapping[str, Any]) -> None:
        """settings: the recipe's. `ModelError` for training rows that cannot be written in this format."""
        self.task = task

    def format_inputs(self, texts: Texts) -> Texts:
        """The inputs as the network reads them, for training and test rows."""
        return texts

    def format_targets(self, texts: Texts, answers: Texts) -> Texts:
        """The network's targets, for the task's inputs and answers."""
        return answers

    def answer(self, written: str) -> str:
        """Extract the answer from a network's output."""
        return written


class WordFormat(Format):
    """Base of formats that insert words into a text: the network reads words separated by spaces, also if the task's
    tokens are characters, and the output no longer has one word for each of the input."""

    def __init__(self, task: Task, train: Columns, settings: Mapping[str, Any]) -> None:
        super().__init__(task, train, settings)
        self.characters = task.tokens == "character"
        self.task = replace(task, tokens="whitespace", aligned=False)

    def words(self, text: str) -> list[str]:
        """The tokens of one of the task's texts."""
        return list(text.replace(" ", SPACE)) if self.characters else text.split()

    def format_inputs(self, texts: Texts) -> Texts:
        return [" ".join(self.words(text)) for text in texts] if self.characters else texts

    def text(self, words: Sequence[str]) -> str:
        """The task's text of these tokens."""
        return "".join(words).replace(SPACE, " ") if self.characters else " ".join(words)

    def vocabulary(self, train: Columns) -> set[str]:
        """Every token of the training rows, of inputs and answers."""
        columns = (train[self.task.inputs[0]], train[self.task.label])
        return {word for column in columns for text in column for word in self.words(text)}


def make_format(task: Task, train: Columns, settings: Mapping[str, Any]) -> Format:
    """Make the format that the setting `format` names, learned from `train`; `UnknownName` for an unknown one."""
    text_format: Format = load_module("baselines/formats", settings["format"], "format").Format(task, train, settings)
    return text_format
