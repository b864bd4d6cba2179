"""AugZero: `copies` copies of each row in new words; every word of a copy has a name of its own.

Zhou, Jiang and Bansal, "Data factors for better compositional generalization", EMNLP 2023 (arXiv:2311.04420): the
vocabulary grows and each row is repeated in it, without knowledge of what a word means, so that single rows are met
less often and are harder to learn by heart. Copy c renames every word of the input and of the answer; no word is common
to two copies. (Written from the paper's description: the released code reads files of augmented rows that it does not
make.)
"""

from collections.abc import Mapping
from typing import Any

from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from . import More, find_text_field
from .primitives import make_name

SETTINGS: dict[str, Any] = {"copies": 1}
"""copies: rows added for each row."""


def more(task: Task, rows: Columns, settings: Mapping[str, Any]) -> More:
    """`ModelError` if tokens are characters, which cannot be renamed."""
    field, copies = find_text_field(task, "aug_zero"), settings["copies"]
    if task.tokens == "character":
        raise ModelError("augmentation aug_zero: it renames words, and this task's tokens are characters")
    texts = {name: [text.split() for text in rows[name]] for name in (field, task.label)}
    known = {word for side in texts.values() for words in side for word in words}
    names = [{word: make_name(word, copy, known) for word in sorted(known)} for copy in range(1, copies + 1)]
    columns: dict[str, list[Any]] = {
        name: [" ".join(renamed[word] for word in words) for words in side for renamed in names]
        for name, side in texts.items()
    }
    return columns, [index for index in range(len(texts[field])) for _ in names]
