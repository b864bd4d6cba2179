"""One step of a Markov algorithm: apply a rule that the input states, to measure how many different rules a model must
see in training to apply a new one. The question is that of Zhang et al. 2024, "Only-IF: Revealing the Decisive Effect
of Instruction Diversity on Generalization" (arXiv 2410.04717): the number of rules grows, the number of rows does not.

    a b > c d : x a b a b    becomes    x c d a b

The leftmost occurrence of the left side is replaced by the right side; a text without one is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_permutation, draw_uniform
from ...core.errors import BadDefinition
from ._rows import count_candidates, make_counters, make_table, take_distinct

SEED_MAKES = "its rules"

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_SIDE = 2
"""Letters of each side of a rule."""
_SIDES = len(_ALPHABET) ** _SIDE
_FIRES = 0.75
"""The share of rows in whose text the left side is inserted; in the others it occurs by chance, in one of a hundred."""


def rows(*, seed: str, shortest: int, longest: int, regimes: list[dict[str, Any]]) -> pa.Table:
    """`rows` texts of `shortest` to `longest` letters for each regime (`regime`, its name), divided evenly among
    `rules` rules, from the rule numbered `first` on.

    Columns: `question` ("a b > c d : x a b y"), `answer` ("x c d y"), `rule` ("a b > c d"), `occurs` (whether the left
    side occurs: yes or no), `regime`.
    """
    records = []
    for regime in regimes:
        records += _make_regime(f"{seed}/{regime.get('regime', '')}", f"{seed}/rules", shortest, longest, **regime)
    return make_table(("question", "answer", "rule", "occurs", "regime"), records)


def apply_rule(left: str, right: str, text: str) -> str:
    """Apply one step of the rule to `text`."""
    return text.replace(left, right, 1)


def list_rules(stream: str, number: NDArray[np.int64]) -> list[tuple[str, str]]:
    """Return both sides of rules by their numbers, which enumerate the (26^2)^2 - 26^2 rules with different sides."""
    order = draw_permutation(stream, np.arange(_SIDES * (_SIDES - 1), dtype=np.uint64))[number]
    left, other = np.divmod(order, _SIDES - 1)
    right = other + (other >= left)  # skips the left side itself
    return [(_format_side(a), _format_side(b)) for a, b in zip(left.tolist(), right.tolist(), strict=True)]


def _format_side(number: int) -> str:
    first, second = divmod(number, len(_ALPHABET))
    return _ALPHABET[first] + _ALPHABET[second]


def _make_regime(
    stream: str, order: str, shortest: int, longest: int, *, regime: str, rows: int, first: int, rules: int
) -> list[tuple[str, str, str, str, str]]:
    """Make the rows of one regime. order: the name of the draw of the rules' numbers."""
    if not _SIDE <= shortest <= longest:
        raise BadDefinition(f"string_rewriting: texts need at least {_SIDE} letters, and shortest <= longest")
    known = list_rules(order, np.arange(first, first + rules))
    texts = _draw_texts(stream, known, shortest, longest, count_candidates(rows))
    examples = take_distinct(
        texts, rows, lambda example: f"{example[0]}>{example[1]}:{example[2]}", f"string_rewriting: {regime}"
    )
    return [
        (
            f"{_space_letters(left)} > {_space_letters(right)} : {_space_letters(text)}",
            _space_letters(apply_rule(left, right, text)),
            f"{_space_letters(left)} > {_space_letters(right)}",
            "yes" if left in text else "no",
            regime,
        )
        for left, right, text in examples
    ]


def _draw_texts(
    stream: str, rules: list[tuple[str, str]], shortest: int, longest: int, count: int
) -> Iterator[tuple[str, str, str]]:
    """Cycle through the rules, with a text for each row."""
    each = make_counters(count)
    lengths = shortest + draw_below(f"{stream}/length", each, longest - shortest + 1)
    letters = draw_below(f"{stream}/letters", make_counters(count * longest), len(_ALPHABET)).reshape(count, longest)
    places = draw_uniform(f"{stream}/place", each)
    fires = draw_uniform(f"{stream}/fires", each) < _FIRES
    for row in range(count):
        left, right = rules[row % len(rules)]
        length = int(lengths[row])
        text = "".join(_ALPHABET[letter] for letter in letters[row, :length])
        if fires[row]:
            at = int(places[row] * (length - _SIDE + 1))
            text = text[:at] + left + text[at + _SIDE :]
        yield left, right, text


def _space_letters(text: str) -> str:
    return " ".join(text)
