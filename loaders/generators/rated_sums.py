"""Sums of several numbers modulo ten, and which of many simulated solvers got each right.

The solvers stand for a panel of systems of known make, so that estimates of difficulty can be held against a truth. A
row is a sum of `fewest` to `most` one-digit numbers with plus and minus signs. Its true difficulty grows with its
length and with its minus signs, and has a part of its own; a solver of ability a solves a row of difficulty b with the
probability a two-parameter model gives, 1 / (1 + exp(-s (a - b))), here its rational stand-in 1/2 (1 + z / (1 + |z|))
with z = s (a - b), which needs no function that platforms round differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import below, uniform
from ...core.errors import BadDefinition
from ._columns import named, numbered
from ._drawn import counters, first_different

if TYPE_CHECKING:
    import pyarrow as pa

_SHARE_ASKED = 0.9
"""Of the solvers, how many answered a row; the others were never asked."""


def rows(*, seed: str, count: int, systems: int, fewest: int, most: int) -> pa.Table:
    """`count` sums. Columns: `question` ("7 + 3 - 5"), `answer` ("0" to "9"), `terms`, `responses` (a character for
    each of `systems` solvers: 1, 0, or `-` where it was not asked), `difficulty` (the truth behind the responses)."""
    import pyarrow as pa

    if not 2 <= fewest <= most:
        raise BadDefinition(f"rated_sums: fewest = {fewest}, most = {most}: two terms at least")
    drawn = counters(2 * count)
    terms = fewest + below(f"{seed}/terms", drawn, most - fewest + 1)
    cells = counters(len(drawn) * most)
    digits = below(f"{seed}/digits", cells, 10).reshape(-1, most)
    minus = below(f"{seed}/signs", cells, 2).reshape(-1, most)
    minus[:, 0] = 0
    every = np.arange(most)[None, :] < terms[:, None]
    texts = [
        _text(row[:length], signs[:length])
        for row, signs, length in zip(digits.tolist(), minus.tolist(), terms.tolist(), strict=True)
    ]
    kept = np.array(first_different(range(len(texts)), count, texts.__getitem__, "rated_sums"))
    own = uniform(f"{seed}/difficulty", drawn[kept]) - 0.5
    difficulty = (
        (terms[kept] - (fewest + most) / 2) / (most - fewest + 1) * 4 + (minus * every)[kept].sum(1) * 0.2 + own
    )
    return pa.table(
        {
            "question": [texts[i] for i in kept],
            "answer": named(numbered("", 10), (digits * np.where(minus, -1, 1) * every)[kept].sum(1) % 10),
            "terms": terms[kept],
            "responses": _responses(seed, difficulty, systems),
            "difficulty": difficulty,
        }
    )


def _text(digits: list[int], minus: list[int]) -> str:
    """A sum as text; the first number has no sign."""
    rest = (f"{'-' if sign else '+'} {digit}" for digit, sign in zip(digits[1:], minus[1:], strict=True))
    return " ".join([str(digits[0]), *rest])


def _responses(seed: str, difficulty: NDArray[np.float64], systems: int) -> list[str]:
    """Each row's responses, one character a solver."""
    items = len(difficulty)
    # The sum of twelve uniform numbers less six: near enough to a standard normal, by additions alone.
    parts = uniform(f"{seed}/ability", counters(systems * 12)).reshape(systems, 12)
    ability = np.add.accumulate(parts, axis=1)[:, -1] - 6
    slope = 1 + uniform(f"{seed}/slope", counters(items))
    z = slope[:, None] * (ability[None, :] - difficulty[:, None])
    chance = 0.5 * (1 + z / (1 + np.abs(z)))
    number = counters(items * systems)
    solved = uniform(f"{seed}/solved", number).reshape(items, systems) < chance
    asked = uniform(f"{seed}/asked", number).reshape(items, systems) < _SHARE_ASKED
    codes = np.where(asked, np.where(solved, b"1", b"0"), b"-")
    return [row.tobytes().decode("ascii") for row in codes]
