"""Formats: what a network reads and writes in place of a task's texts; one file each, its name the setting `format`.

A file holds `class Format`, a subclass of the one here, and its citation. A format is learned from the training rows
alone. It rewrites inputs wherever they are read, answers where they are taught, and reads the answer back out of what
the network wrote: predictions are always of the task itself.

Settings that a format may read: `pieces` (of a scratchpad) and `hint_range` (how many marks of places there are).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ...benchmarks.model import Columns, Task
from ...core.plugins import load_module

Texts = Sequence[str] | NDArray[Any]

SPACE = "␣"
"""What stands for a space where single characters become words."""


class Format:
    """Texts as they are.

    `task` is the task as the network sees it: whether it is aligned, and what its tokens are, may differ."""

    def __init__(self, task: Task, train: Columns, settings: Mapping[str, Any]) -> None:
        """settings: the recipe's. `ModelError` for training rows that cannot be written so."""
        self.task = task

    def format_inputs(self, texts: Texts) -> Texts:
        """The inputs as the network reads them, of training and test rows alike."""
        return texts

    def format_targets(self, texts: Texts, answers: Texts) -> Texts:
        """What the network is taught to write for these inputs, as the task has them, and their answers."""
        return answers

    def answer(self, written: str) -> str:
        """The answer in what a network wrote."""
        return written


class WordFormat(Format):
    """For formats that put words of their own between those of a text: the network sees words parted by spaces, also
    where the task's tokens are characters, and no longer one word of output for each of input."""

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
    """The format that the setting `format` names, learned from `train`; `UnknownName` where there is none."""
    text_format: Format = load_module("baselines/formats", settings["format"], "format").Format(task, train, settings)
    return text_format
