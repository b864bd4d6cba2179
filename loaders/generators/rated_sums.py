"""Sums of several numbers modulo ten, with the responses of many simulated solvers.

The solvers simulate a panel of systems with known abilities, so that estimates of difficulty can be compared to the
truth. A row is a sum of `fewest` to `most` one-digit numbers with plus and minus signs. Its true difficulty grows with
its length and its minus signs, plus a random part; a solver of ability a solves a row of difficulty b with a
probability as in a two-parameter model, 1 / (1 + exp(-s (a - b))), here replaced by the rational function
1/2 (1 + z / (1 + |z|)) with z = s (a - b), which needs no function that platforms round differently.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_uniform
from ...core.errors import BadDefinition
from ._rows import make_counters, make_numbered_words, select_words, take_distinct

_SHARE_ASKED = 0.9
"""The share of solvers with a response to a row; the others have none."""


def rows(*, seed: str, count: int, systems: int, fewest: int, most: int) -> pa.Table:
    """`count` sums. Columns: `question` ("7 + 3 - 5"), `answer` ("0" to "9"), `terms`, `responses` (a character for
    each of `systems` solvers: 1, 0, or `-` for no response), `difficulty` (the true one)."""
    if not 2 <= fewest <= most:
        raise BadDefinition(f"rated_sums: fewest = {fewest}, most = {most}: at least two terms are required")
    drawn = make_counters(2 * count)
    terms = fewest + draw_below(f"{seed}/terms", drawn, most - fewest + 1)
    cells = make_counters(len(drawn) * most)
    digits = draw_below(f"{seed}/digits", cells, 10).reshape(-1, most)
    minus = draw_below(f"{seed}/signs", cells, 2).reshape(-1, most)
    minus[:, 0] = 0
    every = np.arange(most)[None, :] < terms[:, None]
    texts = [
        _format_sum(row[:length], signs[:length])
        for row, signs, length in zip(digits.tolist(), minus.tolist(), terms.tolist(), strict=True)
    ]
    indices = np.array(take_distinct(range(len(texts)), count, texts.__getitem__, "rated_sums"))
    own = draw_uniform(f"{seed}/difficulty", drawn[indices]) - 0.5
    difficulty = (
        (terms[indices] - (fewest + most) / 2) / (most - fewest + 1) * 4 + (minus * every)[indices].sum(1) * 0.2 + own
    )
    return pa.table(
        {
            "question": [texts[i] for i in indices],
            "answer": select_words(
                make_numbered_words("", 10), (digits * np.where(minus, -1, 1) * every)[indices].sum(1) % 10
            ),
            "terms": terms[indices],
            "responses": _draw_responses(seed, difficulty, systems),
            "difficulty": difficulty,
        }
    )


def _format_sum(digits: list[int], minus: list[int]) -> str:
    """Format a sum as text; the first number has no sign."""
    rest = (f"{'-' if sign else '+'} {digit}" for digit, sign in zip(digits[1:], minus[1:], strict=True))
    return " ".join([str(digits[0]), *rest])


def _draw_responses(seed: str, difficulty: NDArray[np.float64], systems: int) -> list[str]:
    """Draw each row's responses, one character per solver."""
    items = len(difficulty)
    # Twelve uniform numbers minus six: close to standard normal, and computed by additions only.
    parts = draw_uniform(f"{seed}/ability", make_counters(systems * 12)).reshape(systems, 12)
    ability = np.add.accumulate(parts, axis=1)[:, -1] - 6
    slope = 1 + draw_uniform(f"{seed}/slope", make_counters(items))
    z = slope[:, None] * (ability[None, :] - difficulty[:, None])
    chance = 0.5 * (1 + z / (1 + np.abs(z)))
    number = make_counters(items * systems)
    solved = draw_uniform(f"{seed}/solved", number).reshape(items, systems) < chance
    is_answered = draw_uniform(f"{seed}/asked", number).reshape(items, systems) < _SHARE_ASKED
    codes = np.where(is_answered, np.where(solved, b"1", b"0"), b"-")
    return [row.tobytes().decode("ascii") for row in codes]
