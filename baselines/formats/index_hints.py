"""Index hints: a marker of the position before every token of the input and of the answer.

Zhou et al., "What algorithms can transformers learn?", ICLR 2024 (arXiv:2310.16028), section 5: `a 3 b 6 + a 3 b 9`,
marks being consecutive members of a longer ordered set that begin anywhere in it, so that all are seen in training at
small lengths. There the task's author places the marks. Here they follow a rule learned from the training rows:

- a word that occurs exactly once in every training input (such as `+` or `:`) is a separator, and has no mark;
- the segments between separators have the same marks, with the last word of each at the same mark, as digits of equal
  value are;
- answers that are always longer than the longest segment by the same number of words are marked in the same way; others
  are marked from the first mark of their row on.

The set is a circle of `hint_range` marks, so that each is seen equally often. The first mark of a row is a function of
its input only: a row always has the same marks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...benchmarks.model import Columns, Task
from ...core.draws import derive_key
from ...core.errors import ModelError
from . import Texts, WordFormat


class Format(WordFormat):
    def __init__(self, task: Task, train: Columns, settings: Mapping[str, Any]) -> None:
        """`ModelError` if a training text is longer than the number of marks, or contains marks already."""
        super().__init__(task, train, settings)
        self.range: int = settings["hint_range"]
        self.marks = [f"i{number}" for number in range(self.range)]
        self._marks = set(self.marks)
        if clashes := self._marks & self.vocabulary(train):
            raise ModelError(f"format index_hints: the training texts have hints already: {min(clashes)!r}")
        inputs = [self.words(text) for text in train[task.inputs[0]]]
        self.separators = _find_separators(inputs)
        longest = [self._longest(words) for words in inputs]
        excess = {len(self.words(text)) - most for text, most in zip(train[task.label], longest, strict=True)}
        self.excess = excess.pop() if len(excess) == 1 else None
        """The number of words by which an answer exceeds the longest segment, if it is always the same."""
        if max(longest, default=0) > self.range:
            raise ModelError(
                f"format index_hints: a training text has {max(longest)} words, but there are {self.range} hints: "
                "raise the setting hint_range"
            )

    def _segments(self, words: Sequence[str]) -> list[int]:
        """The lengths of the segments between separators."""
        lengths = [0]
        for word in words:
            if word in self.separators:
                lengths.append(0)
            else:
                lengths[-1] += 1
        return lengths

    def _longest(self, words: Sequence[str]) -> int:
        return max(self._segments(words))

    def _first(self, text: str) -> int:
        """The position in the circle of a row's first mark."""
        return derive_key(text) % self.range

    def _mark(self, position: int) -> str:
        return self.marks[position % self.range]

    def format_inputs(self, texts: Texts) -> Texts:
        return [self._format_input(text) for text in texts]

    def _format_input(self, text: str) -> str:
        words = self.words(text)
        segments = self._segments(words)
        last = self._first(text) + max(segments)
        marked_words: list[str] = []
        segment, position = 0, last - segments[0]
        for word in words:
            if word in self.separators:
                segment += 1
                position = last - segments[segment]
                marked_words.append(word)
            else:
                marked_words += [self._mark(position), word]
                position += 1
        return " ".join(marked_words)

    def format_targets(self, texts: Texts, answers: Texts) -> Texts:
        return [self._format_target(text, self.words(answer)) for text, answer in zip(texts, answers, strict=True)]

    def _format_target(self, text: str, answer: Sequence[str]) -> str:
        first = self._first(text)
        if self.excess is not None:
            first += self._longest(self.words(text)) - len(answer)
        return " ".join(part for position, word in enumerate(answer, first) for part in (self._mark(position), word))

    def answer(self, written: str) -> str:
        return self.text([word for word in written.split() if word not in self._marks])


def _find_separators(rows: Iterable[Sequence[str]]) -> set[str]:
    """The words that occur exactly once in every row."""
    separators: set[str] | None = None
    for words in rows:
        candidates = set(words) if separators is None else separators
        separators = {word for word in candidates if words.count(word) == 1}
    return separators or set()
