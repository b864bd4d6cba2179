"""The answer is the only class that the text mentions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..model import Task

VERSION = 2
TASKS = ("classification",)

_FOLD = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2043\u2212\ufe63\uff0d", "-")  # hyphens and minus signs
    | dict.fromkeys("\u2018\u2019\u02bc", "'")
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None)  # what is not seen
)
_APART = r"[\s_\-\u2012-\u2015\ufe58]"
"""Separators between the words of a name: spaces, underscores, and dashes of any length."""
_BETWEEN_LETTERS = re.compile(rf"(?<=[^\W\d]){_APART}+(?=[^\W\d])")

_NEGATIONS = ("not", "non", "no", "never", "neither", "nor", "cannot", "hardly")
_TIGHT = "a|an|the|at|all|in|any|way|really|very|be|being|considered|classified|labell?ed|as"
"""Words between a negation and what it negates."""
_TURNS = "only|just|merely|simply|but|and|so|rather|instead|doubt|question|wonder"
"""Words that end the scope of a negation, or show that there is none."""
_QUOTES = r"[\s*\"'\u201c\u201d`(\[_\-\u2012-\u2015\ufe58]"
_NEAR = 80
"""The number of characters before a name that are searched for a negation."""


def extract(text: str, task: Task) -> int | None:
    """Extract the class whose name occurs in the text as a whole word, in any case; None if none or several do.

    A name within a longer name that is mentioned ("cat" in "wild cat") does not count. The words of a name may be
    separated by spaces, underscores, hyphens or dashes of any kind ("non-toxic", "non toxic"; also "nontoxic"). A
    negated name ("not toxic", "isn't really toxic", "neither toxic nor ..") does not count; if another class is its
    negation by name ("non-toxic", "not_toxic"), that class counts, provided that only an article or a similar word is
    in between. Classes without names are called 0, 1, 2 ..
    """
    names = _Names.of(tuple(task.names or map(str, range(task.classes or 0))))
    text = text.translate(_FOLD).casefold()
    mentioned = set()
    for match in names.pattern.finditer(text):
        (name,) = (index for index, mention in enumerate(match.groups()) if mention is not None)
        before = text[max(0, match.start() - _NEAR) : match.start()]
        if names.negated.search(before):
            name = names.opposites.get(name, -1)
        elif names.doubtful.search(before):
            name = -1
        mentioned.add(name)
    classes = mentioned - {-1}
    return names.first[classes.pop()] if len(classes) == 1 else None


class _Names:
    """The names of the classes. `pattern` has a group for each name, longest first; `first` is the class of each, None
    if several have that name."""

    def __init__(self, given: Sequence[str]) -> None:
        folded = [name.translate(_FOLD).casefold() for name in given]
        keys = [_BETWEEN_LETTERS.sub("-", name) for name in folded]
        alike = len(set(keys)) < len(set(folded))  # names that differ only in their separators
        ordered = sorted(set(folded if alike else keys), key=lambda name: (-len(name), name))
        own = folded if alike else keys
        self.first = [own.index(name) if own.count(name) == 1 else None for name in ordered]
        self.opposites = {
            ordered.index(rest): ordered.index(name)
            for name in ordered
            for start in ("non", "not", "no")
            if name.startswith(f"{start}-") and (rest := name.removeprefix(f"{start}-")) in ordered
        }
        words = "|".join(f"({_make_name_pattern(name) if not alike else re.escape(name)})" for name in ordered)
        self.pattern = re.compile(rf"(?<![\w-])(?<![0-9]\.)(?:{words})(?![\w-])(?!\.[0-9])")
        negation = "|".join([*(word for word in _NEGATIONS if word not in folded), r"\w+n't"])
        self.negated = re.compile(rf"(?<![\w-])(?:{negation})(?:{_QUOTES}+(?:{_TIGHT})){{0,3}}{_QUOTES}+$")
        self.doubtful = re.compile(
            rf"(?<![\w-])(?:{negation})(?:{_QUOTES}+(?!(?:{_TURNS})\b)[^\W\d_]+){{0,3}}{_QUOTES}+$"
        )

    @staticmethod
    @lru_cache(maxsize=64)
    def of(given: tuple[str, ...]) -> _Names:
        return _Names(given)


def _make_name_pattern(name: str) -> str:
    """Return the pattern of a name with any separators between its words."""
    words = _BETWEEN_LETTERS.split(name)
    joined = f"{_APART}+".join(map(re.escape, words))
    return f"non{_APART}*" + joined.removeprefix(f"non{_APART}+") if words[0] == "non" and len(words) > 1 else joined


def _extract_1(text: str, task: Task) -> int | None:
    """Version 1: negations are ignored, and names are matched literally."""
    names = [name.casefold() for name in task.names or map(str, range(task.classes or 0))]
    longest_first = sorted(set(names), key=lambda name: (-len(name), name))
    pattern = "|".join(map(re.escape, longest_first))
    word = rf"(?<![\w-])(?<![0-9]\.)(?:{pattern})(?![\w-])(?!\.[0-9])"
    mentioned = set(re.findall(word, text.casefold()))
    classes = [index for index, name in enumerate(names) if name in mentioned]
    return classes[0] if len(classes) == 1 else None


EARLIER = {1: _extract_1}
