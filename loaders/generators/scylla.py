"""Twenty tasks on lists of numbers at five levels of complexity, with numbers that training shows and numbers that it
never shows: after Qi et al. 2025, "Quantifying Generalization Complexity for Large Language Models" (Scylla, arXiv
2410.01769).

There, a list is in-distribution where the model under test wrote it itself, so that no two models answer the same rows.
Here the numbers 1 to 399 are dealt into two halves: lists of the one half are in-distribution for every model. Levels
are by the time of the best known and of the plainest algorithm, n the length of the list: 1 O(n); 2 above it, up to
O(n^2); 3 O(n^2) to O(n^3); 4 O(n^3) to O(n^4); 5 exponential. Every answer is unique: of several solutions the shortest
is asked for, and of equally short ones the first in ascending order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from typing import TYPE_CHECKING

import numpy as np

from ...core.draws import below, bits, shuffled
from ._columns import tabled
from ._drawn import candidates, counters, first_different

if TYPE_CHECKING:
    import pyarrow as pa

SEED_MAKES = "which numbers training shows"

_HIGHEST = 399
_DRAWS = 16


@dataclass(frozen=True)
class _Drawn:
    """What a row is made of: different numbers of one half, and as many draws in [0, 2^16)."""

    numbers: list[int]
    draws: list[int]

    def below(self, which: int, bound: int) -> int:
        return self.draws[which] * bound >> 16


_Made = tuple[str, str]
"""The text of an instance and its answer."""


def _words(numbers: list[int] | tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))


def _repeated(drawn: _Drawn) -> list[int]:
    """Nine numbers, of which some stand more than once."""
    return [drawn.numbers[drawn.below(place, 5)] for place in range(9)]


def _minimum(drawn: _Drawn) -> _Made:
    return _words(drawn.numbers[:8]), str(min(drawn.numbers[:8]))


def _maximum(drawn: _Drawn) -> _Made:
    return _words(drawn.numbers[:8]), str(max(drawn.numbers[:8]))


def _mode(drawn: _Drawn) -> _Made:
    count = Counter(numbers := _repeated(drawn))
    return _words(numbers), str(min(count, key=lambda number: (-count[number], number)))


def _largest(drawn: _Drawn) -> _Made:
    k = 2 + drawn.below(0, 3)
    return f"{_words(drawn.numbers[:8])} ; k {k}", _words(sorted(drawn.numbers[:8], reverse=True)[:k])


def _sort(drawn: _Drawn) -> _Made:
    return _words(drawn.numbers[:8]), _words(sorted(drawn.numbers[:8]))


def _unique(drawn: _Drawn) -> _Made:
    return _words(numbers := _repeated(drawn)), _words(list(dict.fromkeys(numbers)))


def _longest_increasing(drawn: _Drawn) -> _Made:
    numbers = drawn.numbers[:8]
    best = [1] * len(numbers)
    for last in range(len(numbers)):
        best[last] += max((best[i] for i in range(last) if numbers[i] < numbers[last]), default=0)
    return _words(numbers), str(max(best))


def _longest_run_of_tens(drawn: _Drawn) -> _Made:
    """The numbers fall into tens (0-9, 10-19 ..): the longest run of neighbouring tens."""
    numbers = drawn.numbers[:12]
    tens = {number // 10 for number in numbers}
    starts = (ten for ten in tens if ten - 1 not in tens)
    return _words(numbers), str(max(next(n for n in range(1, 99) if ten + n not in tens) for ten in starts))


def _common_run(drawn: _Drawn) -> _Made:
    """The longest run of numbers that stands in both lists, the first such of the first list."""
    one = drawn.numbers[:7]
    length, start = 2 + drawn.below(0, 3), drawn.below(1, 3)
    other = [*drawn.numbers[7:9], *one[start : start + length], *drawn.numbers[9:11]]
    return f"{_words(one)} ; {_words(other)}", _words(one[start : start + length])


def _tour(drawn: _Drawn) -> _Made:
    """Five places and the ten distances between them: the length of the shortest round trip."""
    distance = dict(zip(combinations(range(5), 2), drawn.numbers[:10], strict=True))

    def length(order: tuple[int, ...]) -> int:
        stops = (0, *order, 0)
        return sum(distance[min(pair), max(pair)] for pair in pairwise(stops))

    return _words(drawn.numbers[:10]), str(min(map(length, permutations(range(1, 5)))))


_Wanted = Callable[[_Drawn, int], tuple[str, Callable[[int], bool]]]


def _exactly(drawn: _Drawn, total: int) -> tuple[str, Callable[[int], bool]]:
    return f"sum {total}", lambda found: found == total


def _in_range(drawn: _Drawn, total: int) -> tuple[str, Callable[[int], bool]]:
    low, high = total - drawn.below(14, 8), total + drawn.below(15, 8)
    return f"sum {low} to {high}", lambda found: low <= found <= high


def _multiple_of_ten(drawn: _Drawn, total: int) -> tuple[str, Callable[[int], bool]]:
    return "sum multiple of 10", lambda found: found % 10 == 0


def _subset(sizes: tuple[int, ...], wanted: _Wanted) -> Callable[[_Drawn], _Made]:
    """Find the numbers, as many as one of `sizes`, whose sum is as wanted; "none" where there are no such."""

    def make(drawn: _Drawn) -> _Made:
        numbers = drawn.numbers[:8]
        size = sizes[drawn.below(0, len(sizes))]
        text, fits = wanted(drawn, sum(numbers[i] for i in range(size)))
        order = [numbers[i] for i in sorted(range(8), key=lambda i: drawn.draws[1 + i])]
        ascending = sorted(numbers)
        found = (some for k in sizes for some in combinations(ascending, k) if fits(sum(some)))
        return f"{_words(order)} ; {text}", _words(next(found, ())) or "none"

    return make


_ANY = tuple(range(2, 9))

TASKS: dict[str, tuple[int, Callable[[_Drawn], _Made]]] = {
    "find minimum": (1, _minimum),
    "find maximum": (1, _maximum),
    "find mode": (1, _mode),
    "find largest k": (2, _largest),
    "sort": (2, _sort),
    "remove duplicates": (2, _unique),
    "longest increasing subsequence": (2, _longest_increasing),
    "longest run of tens": (2, _longest_run_of_tens),
    "two sum": (2, _subset((2,), _exactly)),
    "longest common run": (3, _common_run),
    "three sum": (3, _subset((3,), _exactly)),
    "three sum in range": (3, _subset((3,), _in_range)),
    "three sum to tens": (3, _subset((3,), _multiple_of_ten)),
    "four sum": (4, _subset((4,), _exactly)),
    "four sum in range": (4, _subset((4,), _in_range)),
    "four sum to tens": (4, _subset((4,), _multiple_of_ten)),
    "subset sum": (5, _subset(_ANY, _exactly)),
    "subset sum in range": (5, _subset(_ANY, _in_range)),
    "subset sum to tens": (5, _subset(_ANY, _multiple_of_ten)),
    "shortest round trip": (5, _tour),
}
"""Each task's level, and how a row of it is made."""


def halves(seed: str) -> tuple[list[int], list[int]]:
    """The numbers that training shows, and those that it never shows; each ascending."""
    order = 1 + shuffled(f"{seed}/halves", counters(_HIGHEST))
    return sorted(order[: _HIGHEST // 2].tolist()), sorted(order[_HIGHEST // 2 :].tolist())


def rows(*, seed: str, train: int, test: int) -> pa.Table:
    """For each task `train` rows for training, and `test` rows for each of the two tests.

    Columns: `question` ("sort : 8 3 15 .."), `answer` (numbers, or "none"), `task`, `level` (1 to 5), `numbers`
    ("shown" or "never shown"), `use` ("train", "id_test", "ood_test").
    """
    shown, never = halves(seed)
    made: list[tuple[str, str, str, int, str, str]] = []
    for task, (level, make) in TASKS.items():
        for name, pool, uses in (
            ("shown", shown, ["train"] * train + ["id_test"] * test),
            ("never shown", never, ["ood_test"] * test),
        ):
            drawn = _draw(f"{seed}/{task}/{name}", pool, len(uses))
            instances = first_different(
                (make(one) for one in drawn), len(uses), lambda pair: pair[0], f"scylla: {task}, {name}"
            )
            made += [
                (f"{task} : {text}", answer, task, level, name, use)
                for (text, answer), use in zip(instances, uses, strict=True)
            ]
    return tabled(("question", "answer", "task", "level", "numbers", "use"), made)


def _draw(stream: str, pool: list[int], count: int) -> list[_Drawn]:
    """What more than `count` rows are made of."""
    rows = candidates(count)
    order = np.argsort(bits(f"{stream}/numbers", counters(rows * len(pool))).reshape(rows, -1), kind="stable")
    numbers = np.array(pool)[order[:, :_DRAWS]]
    draws = below(f"{stream}/draws", counters(rows * _DRAWS), 2**16).reshape(rows, _DRAWS)
    return [_Drawn(*one) for one in zip(numbers.tolist(), draws.tolist(), strict=True)]
