"""Primitive augmentation: `copies` copies of each row with renamed primitives.

Zhou, Jiang and Bansal, "Data factors for better compositional generalization", EMNLP 2023 (arXiv:2311.04420), section
3: with 20 or 200 times as many primitives a Transformer can no longer learn what to do with each by heart, and SCAN's
jump is solved. There a grammar says which words are primitives. Here a rule learned from the training rows does: an
input word and an output word are a primitive if the one is in a row's input exactly where the other is in its output,
in some rows and not in all, and no further word of either side is in exactly these rows. Renaming both in a row then
contradicts no row. (One mislabelled row is enough to hide a primitive.)

The names of a primitive are itself and `copies` more. Copy c of a row gives its first primitive the name c and each
other one the name c places on, in a circle of the new names, from where it is drawn to begin: every name is met as
often as the others, and names of one number have no more to do with each other than with the rest.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...benchmarks.model import Columns, Task
from ...core.draws import derive_key
from ...core.errors import ModelError
from . import More, find_text_field

SETTINGS: dict[str, Any] = {"copies": 1}
"""copies: rows added for each row."""


def find_primitives(inputs: Sequence[list[str]], outputs: Sequence[list[str]]) -> dict[str, str]:
    """Each primitive's input word and its output word, from rows of words."""
    read, written = _group_words_by_rows(inputs), _group_words_by_rows(outputs)
    return {
        words[0]: written[places][0]
        for places, words in read.items()
        if len(words) == 1 and len(written.get(places, [])) == 1 and len(places) < len(inputs)
    }


def _group_words_by_rows(rows: Sequence[list[str]]) -> dict[tuple[int, ...], list[str]]:
    """The words by the rows that contain them."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, words in enumerate(rows):
        for word in dict.fromkeys(words):
            places[word].append(index)
    words_by_rows: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for word, where in places.items():
        words_by_rows[tuple(where)].append(word)
    return dict(words_by_rows)


def more(task: Task, rows: Columns, settings: Mapping[str, Any]) -> More:
    """`ModelError` if there is no primitive, or if tokens are characters, which cannot be renamed."""
    field, copies = find_text_field(task, "primitives"), settings["copies"]
    if task.tokens == "character":
        raise ModelError("augmentation primitives: it renames words, and this task's tokens are characters")
    inputs, outputs = ([text.split() for text in rows[name]] for name in (field, task.label))
    pairs = find_primitives(inputs, outputs)
    if not pairs:
        raise ModelError(
            "augmentation primitives: no word of the inputs corresponds to one word of the outputs in the training rows"
        )
    known = {word for side in (inputs, outputs) for words in side for word in words}
    columns: dict[str, list[Any]] = {field: [], task.label: []}
    parents: list[int] = []
    for index, (read, written) in enumerate(zip(inputs, outputs, strict=True)):
        own = [word for word in dict.fromkeys(read) if word in pairs]
        if not own:
            continue
        begin = {word: derive_key(f"primitives/{index}/{word}") % copies for word in own}
        begin[own[0]] = 0
        for copy in range(copies):
            name = {word: 1 + (begin[word] + copy) % copies for word in own}
            renamed = {word: make_name(word, number, known) for word, number in name.items()}
            answer = {pairs[word]: make_name(pairs[word], number, known) for word, number in name.items()}
            columns[field].append(" ".join(renamed.get(word, word) for word in read))
            columns[task.label].append(" ".join(answer.get(word, word) for word in written))
            parents.append(index)
    return columns, parents


def make_name(word: str, number: int, known: set[str]) -> str:
    """A primitive's new name with this number, different from all existing words."""
    name = f"{word}_{number}"
    while name in known:
        name += "_"
    return name
