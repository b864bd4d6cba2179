"""Twenty tasks at five levels: each answer is found again by another way."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise, permutations

import pytest
from farshift.loaders.generators import scylla

ROWS = scylla.rows(seed="t", train=12, test=8).to_pylist()


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def subset(values: list[int], wanted: str, sizes: list[int]) -> str:
    """The shortest, then first, fitting subset, from a list of all of them."""
    low, _, high = wanted.removeprefix("sum ").partition(" to ")
    result = [
        sorted(some)
        for size in sizes
        for some in combinations(values, size)
        if (sum(some) % 10 == 0 if wanted == "sum multiple of 10" else int(low) <= sum(some) <= int(high or low))
    ]
    return " ".join(map(str, min(result, key=lambda some: (len(some), some)))) if result else "none"


def longest_increasing(values: list[int]) -> int:
    return max(
        size
        for size in range(1, 9)
        if any(all(a < b for a, b in pairwise(some)) for some in combinations(values, size))
    )


def common_run(one: list[int], other: list[int]) -> list[int]:
    runs = [one[i:j] for i in range(len(one)) for j in range(i + 1, len(one) + 1)]
    inside = [run for run in runs if any(other[k : k + len(run)] == run for k in range(len(other)))]
    return max(inside, key=len)


def tens(values: list[int]) -> int:
    there = {value // 10 for value in values}
    return max(size for size in range(1, 13) for ten in there if all(ten + i in there for i in range(size)))


def round_trip(values: list[int]) -> int:
    distance = {frozenset(pair): value for pair, value in zip(combinations("abcde", 2), values, strict=True)}
    return min(sum(distance[frozenset(step)] for step in pairwise([*tour, tour[0]])) for tour in permutations("abcde"))


def solve(task: str, text: str) -> str:
    head, _, rest = text.partition(" ; ")
    values = numbers(head)
    match task.split():
        case ["find", "minimum"]:
            return str(sorted(values)[0])
        case ["find", "maximum"]:
            return str(sorted(values)[-1])
        case ["find", "mode"]:
            count = Counter(values)
            return str(min(value for value in values if count[value] == max(count.values())))
        case ["find", "largest", "k"]:
            return " ".join(map(str, sorted(values)[: -1 - int(rest.split()[1]) : -1]))
        case ["sort"]:
            return " ".join(map(str, sorted(values)))
        case ["remove", "duplicates"]:
            return " ".join(str(value) for position, value in enumerate(values) if value not in values[:position])
        case ["longest", "increasing", "subsequence"]:
            return str(longest_increasing(values))
        case ["longest", "run", "of", "tens"]:
            return str(tens(values))
        case ["longest", "common", "run"]:
            return " ".join(map(str, common_run(values, numbers(rest))))
        case ["shortest", "round", "trip"]:
            return str(round_trip(values))
        case [size, "sum", *_]:
            sizes = {"two": [2], "three": [3], "four": [4], "subset": list(range(2, 9))}[size]
            return subset(values, rest, sizes)
    raise AssertionError(task)


@pytest.mark.parametrize("task", scylla.TASKS)
def test_answers_are_right_and_the_only_ones(task):
    own = [row for row in ROWS if row["task"] == task]
    assert len(own) == 12 + 2 * 8
    for row in own:
        name, text = row["question"].split(" : ")
        assert name == task
        assert solve(task, text) == row["answer"], row


def test_twenty_tasks_stand_at_five_levels():
    assert len(scylla.TASKS) == 20
    assert sorted(Counter(level for level, _ in scylla.TASKS.values()).items()) == [
        (1, 3),
        (2, 6),
        (3, 4),
        (4, 3),
        (5, 4),
    ]
    assert all(row["level"] == scylla.TASKS[row["task"]][0] for row in ROWS)


def test_lists_of_the_ood_test_hold_no_number_of_a_training_list():
    lists = {"train": set(), "id_test": set(), "ood_test": set()}
    for row in ROWS:
        body = row["question"].split(" : ")[1]
        head, _, rest = body.partition(" ; ")
        lists[row["use"]] |= set(numbers(head)) | (set(numbers(rest)) if "common run" in row["question"] else set())
    shown, never = scylla.draw_halves("t")
    assert lists["train"] <= set(shown)
    assert lists["id_test"] <= set(shown)
    assert lists["ood_test"] <= set(never)
    assert sorted(shown + never) == list(range(1, 400))


def test_questions_differ_and_each_use_has_its_rows():
    assert len({row["question"] for row in ROWS}) == len(ROWS)
    assert Counter((row["use"], row["numbers"]) for row in ROWS) == {
        ("train", "shown"): 240,
        ("id_test", "shown"): 160,
        ("ood_test", "never shown"): 160,
    }
