"""Twenty tasks on lists of numbers at five levels of complexity, with numbers in training and held-out numbers: after
Qi et al. 2025, "Quantifying Generalization Complexity for Large Language Models" (Scylla, arXiv 2410.01769).

In the paper, a list is in-distribution if the evaluated model wrote it, so models are evaluated on different rows. Here
the numbers 1 to 399 are divided into two halves, and lists of one half are in-distribution for every model. Levels are
by the time of the best known and of the simplest algorithm, where n is the length of the list: 1 O(n); 2 above it, up
to O(n^2); 3 O(n^2) to O(n^3); 4 O(n^3) to O(n^4); 5 exponential. Every answer is unique: of several solutions it is the
shortest, and of equally short ones the first in ascending order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

import numpy as np
import pyarrow as pa

from ...core.draws import draw_below, draw_bits, draw_permutation
from ._rows import count_candidates, make_counters, make_table, take_distinct

SEED_MAKES = "which numbers training shows"

_HIGHEST = 399
_DRAWS = 16


@dataclass(frozen=True)
class _RowDraws:
    """The randomness of a row: distinct numbers of one half, and as many draws in [0, 2^16)."""

    numbers: list[int]
    draws: list[int]

    def below(self, which: int, bound: int) -> int:
        return self.draws[which] * bound >> 16


_Problem = tuple[str, str]
"""The text of an instance and its answer."""


def _format_numbers(numbers: list[int] | tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))


def _pick_repeated(row: _RowDraws) -> list[int]:
    """Return nine numbers, some of them repeated."""
    return [row.numbers[row.below(index, 5)] for index in range(9)]


def _make_minimum(row: _RowDraws) -> _Problem:
    return _format_numbers(row.numbers[:8]), str(min(row.numbers[:8]))


def _make_maximum(row: _RowDraws) -> _Problem:
    return _format_numbers(row.numbers[:8]), str(max(row.numbers[:8]))


def _make_mode(row: _RowDraws) -> _Problem:
    count = Counter(numbers := _pick_repeated(row))
    return _format_numbers(numbers), str(min(count, key=lambda number: (-count[number], number)))


def _make_largest(row: _RowDraws) -> _Problem:
    k = 2 + row.below(0, 3)
    return f"{_format_numbers(row.numbers[:8])} ; k {k}", _format_numbers(sorted(row.numbers[:8], reverse=True)[:k])


def _make_sort(row: _RowDraws) -> _Problem:
    return _format_numbers(row.numbers[:8]), _format_numbers(sorted(row.numbers[:8]))


def _make_unique(row: _RowDraws) -> _Problem:
    return _format_numbers(numbers := _pick_repeated(row)), _format_numbers(list(dict.fromkeys(numbers)))


def _make_longest_increasing(row: _RowDraws) -> _Problem:
    numbers = row.numbers[:8]
    best = [1] * len(numbers)
    for last in range(len(numbers)):
        best[last] += max((best[i] for i in range(last) if numbers[i] < numbers[last]), default=0)
    return _format_numbers(numbers), str(max(best))


def _make_longest_run_of_tens(row: _RowDraws) -> _Problem:
    """The numbers fall into tens (0-9, 10-19 ..): the longest run of neighbouring tens."""
    numbers = row.numbers[:12]
    tens = {number // 10 for number in numbers}
    starts = (ten for ten in tens if ten - 1 not in tens)
    return _format_numbers(numbers), str(max(next(n for n in range(1, 99) if ten + n not in tens) for ten in starts))


def _make_common_run(row: _RowDraws) -> _Problem:
    """The longest run of numbers that is in both lists; of several, the first in the first list."""
    first = row.numbers[:7]
    length, start = 2 + row.below(0, 3), row.below(1, 3)
    second = [*row.numbers[7:9], *first[start : start + length], *row.numbers[9:11]]
    return f"{_format_numbers(first)} ; {_format_numbers(second)}", _format_numbers(first[start : start + length])


def _make_tour(row: _RowDraws) -> _Problem:
    """Five places and the ten distances between them: the length of the shortest round trip."""
    distance = dict(zip(combinations(range(5), 2), row.numbers[:10], strict=True))

    def length(order: tuple[int, ...]) -> int:
        stops = (0, *order, 0)
        return sum(distance[min(pair), max(pair)] for pair in pairwise(stops))

    return _format_numbers(row.numbers[:10]), str(min(map(length, permutations(range(1, 5)))))


_SumCondition = Callable[[_RowDraws, int], tuple[str, Callable[[int], bool]]]


def _require_exact_sum(row: _RowDraws, total: int) -> tuple[str, Callable[[int], bool]]:
    return f"sum {total}", lambda value: value == total


def _require_sum_in_range(row: _RowDraws, total: int) -> tuple[str, Callable[[int], bool]]:
    low, high = total - row.below(14, 8), total + row.below(15, 8)
    return f"sum {low} to {high}", lambda value: low <= value <= high


def _require_multiple_of_ten(row: _RowDraws, total: int) -> tuple[str, Callable[[int], bool]]:
    return "sum multiple of 10", lambda value: value % 10 == 0


def _make_subset_task(sizes: tuple[int, ...], condition: _SumCondition) -> Callable[[_RowDraws], _Problem]:
    """Find numbers, as many as one of `sizes`, whose sum meets the condition; "none" if there are none."""

    def make(row: _RowDraws) -> _Problem:
        numbers = row.numbers[:8]
        size = sizes[row.below(0, len(sizes))]
        text, fits = condition(row, sum(numbers[i] for i in range(size)))
        order = [numbers[i] for i in sorted(range(8), key=lambda i: row.draws[1 + i])]
        ascending = sorted(numbers)
        matches = (subset for k in sizes for subset in combinations(ascending, k) if fits(sum(subset)))
        return f"{_format_numbers(order)} ; {text}", _format_numbers(next(matches, ())) or "none"

    return make


_ANY = tuple(range(2, 9))

TASKS: dict[str, tuple[int, Callable[[_RowDraws], _Problem]]] = {
    "find minimum": (1, _make_minimum),
    "find maximum": (1, _make_maximum),
    "find mode": (1, _make_mode),
    "find largest k": (2, _make_largest),
    "sort": (2, _make_sort),
    "remove duplicates": (2, _make_unique),
    "longest increasing subsequence": (2, _make_longest_increasing),
    "longest run of tens": (2, _make_longest_run_of_tens),
    "two sum": (2, _make_subset_task((2,), _require_exact_sum)),
    "longest common run": (3, _make_common_run),
    "three sum": (3, _make_subset_task((3,), _require_exact_sum)),
    "three sum in range": (3, _make_subset_task((3,), _require_sum_in_range)),
    "three sum to tens": (3, _make_subset_task((3,), _require_multiple_of_ten)),
    "four sum": (4, _make_subset_task((4,), _require_exact_sum)),
    "four sum in range": (4, _make_subset_task((4,), _require_sum_in_range)),
    "four sum to tens": (4, _make_subset_task((4,), _require_multiple_of_ten)),
    "subset sum": (5, _make_subset_task(_ANY, _require_exact_sum)),
    "subset sum in range": (5, _make_subset_task(_ANY, _require_sum_in_range)),
    "subset sum to tens": (5, _make_subset_task(_ANY, _require_multiple_of_ten)),
    "shortest round trip": (5, _make_tour),
}
"""The level of each task, and the function that makes a row."""


def draw_halves(seed: str) -> tuple[list[int], list[int]]:
    """Draw the numbers in training and the held-out numbers, each ascending."""
    order = 1 + draw_permutation(f"{seed}/halves", make_counters(_HIGHEST))
    return sorted(order[: _HIGHEST // 2].tolist()), sorted(order[_HIGHEST // 2 :].tolist())


def rows(*, seed: str, train: int, test: int) -> pa.Table:
    """For each task, `train` rows for training and `test` rows for each of the two tests.

    Columns: `question` ("sort : 8 3 15 .."), `answer` (numbers, or "none"), `task`, `level` (1 to 5), `numbers`
    ("shown" or "never shown"), `use` ("train", "id_test", "ood_test").
    """
    train_numbers, test_numbers = draw_halves(seed)
    records: list[tuple[str, str, str, int, str, str]] = []
    for task, (level, make) in TASKS.items():
        for name, pool, uses in (
            ("shown", train_numbers, ["train"] * train + ["id_test"] * test),
            ("never shown", test_numbers, ["ood_test"] * test),
        ):
            drawn = _draw_rows(f"{seed}/{task}/{name}", pool, len(uses))
            instances = take_distinct(
                (make(row) for row in drawn), len(uses), lambda pair: pair[0], f"scylla: {task}, {name}"
            )
            records += [
                (f"{task} : {text}", answer, task, level, name, use)
                for (text, answer), use in zip(instances, uses, strict=True)
            ]
    return make_table(("question", "answer", "task", "level", "numbers", "use"), records)


def _draw_rows(stream: str, pool: list[int], count: int) -> list[_RowDraws]:
    """Draw the randomness of more than `count` rows."""
    rows = count_candidates(count)
    order = np.argsort(draw_bits(f"{stream}/numbers", make_counters(rows * len(pool))).reshape(rows, -1), kind="stable")
    numbers = np.array(pool)[order[:, :_DRAWS]]
    draws = draw_below(f"{stream}/draws", make_counters(rows * _DRAWS), 2**16).reshape(rows, _DRAWS)
    return [_RowDraws(*row) for row in zip(numbers.tolist(), draws.tolist(), strict=True)]
