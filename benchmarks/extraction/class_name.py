"""The only class that the text mentions is the answer."""

from __future__ import annotations

import re

from ..model import Task

VERSION = 1
TASKS = ("classification",)


def extract(text: str, task: Task) -> int | None:
    """The class whose name stands in the text as a whole word, in any case; None if none or several are mentioned.

    A name within a longer name that is mentioned ("cat" in "wild cat") is not mentioned itself. Classes without names
    are called 0, 1, 2 ..
    """
    names = [name.casefold() for name in task.names or map(str, range(task.classes or 0))]
    longest_first = sorted(set(names), key=lambda name: (-len(name), name))
    pattern = "|".join(map(re.escape, longest_first))
    word = rf"(?<![\w-])(?<![0-9]\.)(?:{pattern})(?![\w-])(?!\.[0-9])"
    mentioned = set(re.findall(word, text.casefold()))
    classes = [index for index, name in enumerate(names) if name in mentioned]
    return classes[0] if len(classes) == 1 else None
