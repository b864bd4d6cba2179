"""Algorithms and their traces: each answer against another algorithm, each trace replayed."""

from __future__ import annotations

from itertools import chain, combinations, pairwise

import pytest
from algorithmic_cases import instances
from farshift.core.errors import BadDefinition

SIZES = (2, 3, 8, 10, 30)
TASKS = [
    "traces_linear/register_machine",
    "traces_linear/digit_product",
    "traces_linear/interval_schedule",
    "traces_linear/increasing_subsequences",
    "traces_branching/inorder_traversal",
    "traces_branching/merge_sort",
    "traces_branching/pair_sums",
    "traces_branching/tree_search",
]


def traced(task: str, sizes=SIZES) -> list[tuple[str, list[str], str]]:
    """Input, steps and answer of some rows."""
    result = []
    for row in instances(task, sizes, trace=True):
        steps, answer = row["output"].split(" = ")
        result.append((row["input"], steps.split(" ; "), answer))
    return result


@pytest.mark.parametrize("task", TASKS)
def test_with_and_without_its_trace_a_task_has_the_same_inputs_and_answers(task):
    plain = [(row["input"], row["output"]) for row in instances(task, SIZES, trace=False)]
    assert plain == [(given, answer) for given, _, answer in traced(task)]
    assert [row["item"] for row in instances(task, SIZES, trace=False)] == [
        row["item"] for row in instances(task, SIZES, trace=True)
    ]


def test_a_register_machine_ends_as_its_program_says():
    for program, steps, answer in traced("traces_linear/register_machine"):
        memory, written = dict.fromkeys("abcd", 0), []
        for line in program.split(" ; "):
            target, sign, operand = line.split()
            memory[target] = (memory.get(operand, 0) if operand in memory else int(operand)) + (
                memory[target] if sign == "+" else 0
            )
            memory[target] %= 10
            written.append(f"{target} {memory[target]}")
        assert steps == written
        assert answer.split() == [str(memory[name]) for name in "abcd"]


def test_a_long_product_is_the_product_and_its_steps_are_the_carries():
    for given, steps, answer in traced("traces_linear/digit_product"):
        number, factor = given.split(" * ")
        assert int(answer.replace(" ", "")) == int(number.replace(" ", "")) * int(factor)
        moves = [tuple(map(int, step.split())) for step in steps]
        assert [digit for digit, *_ in moves] == [int(digit) for digit in number.split()[::-1]]
        assert moves[0][1] == 0 and all(before[3] == after[1] for before, after in pairwise(moves))
        assert all(digit * int(factor) + into == 10 * out + low for digit, into, low, out in moves)


def test_no_larger_set_of_intervals_fits_than_the_one_that_is_taken():
    for given, steps, answer in traced("traces_linear/interval_schedule", (1, 2, 5, 9)):
        intervals = [tuple(map(int, item.split())) for item in given.split(" ; ")]
        assert intervals == sorted(set(intervals), key=lambda one: one[::-1])
        accepted = [item for item, step in zip(intervals, steps, strict=True) if step.endswith("take")]
        assert [end for _, end in accepted] == [int(end) for end in answer.split()]
        assert all(item[1] <= other[0] for item, other in pairwise(accepted))
        larger = combinations(intervals, len(accepted) + 1)
        assert not any(all(item[1] <= other[0] for item, other in pairwise(sorted(some))) for some in larger)


def test_increasing_subsequences_are_counted_as_if_all_were_listed():
    for given, steps, answer in traced("traces_linear/increasing_subsequences", (1, 2, 5, 10)):
        numbers = [int(word) for word in given.split()]
        listed = [
            some
            for size in range(1, len(numbers) + 1)
            for some in combinations(enumerate(numbers), size)
            if all(item[1] < other[1] for item, other in pairwise(some))
        ]
        assert int(answer) == len(listed) % 10
        ending = [sum(some[-1][0] == position for some in listed) % 10 for position in range(len(numbers))]
        assert steps == [f"{number} {count}" for number, count in zip(numbers, ending, strict=True)]


def test_an_inorder_traversal_is_that_of_the_tree_that_is_given():
    def order(words: list[str]) -> list[str]:
        label = words.pop(0)
        return [] if label == "." else [*order(words), label, *order(words)]

    for given, steps, answer in traced("traces_branching/inorder_traversal"):
        assert answer.split() == order(given.split())
        assert [step.split()[1] for step in steps if step.startswith("at")] == answer.split()
        assert [step.split()[1] for step in steps if step.startswith("down")] == given.replace(" .", "").split()
        depth = [{"down": 1, "at": 0, "up": -1}[step.split()[0]] for step in steps]
        assert sum(depth) == 0


def test_a_merge_sort_halves_the_number_of_its_runs_each_round():
    for given, steps, answer in traced("traces_branching/merge_sort"):
        numbers = [int(word) for word in given.split()]
        assert [int(word) for word in answer.split()] == sorted(numbers)
        runs = [[number] for number in numbers]
        for step in steps:
            runs = [sorted(chain(*runs[at : at + 2])) for at in range(0, len(runs), 2)]
            assert [[int(word) for word in run.split()] for run in step.split(" | ")] == runs
        assert len(runs) == 1


def test_the_pairs_of_a_sum_are_counted_and_every_pair_is_looked_at():
    for given, steps, answer in traced("traces_branching/pair_sums"):
        listed, expected = given.split(" : ")
        numbers = [int(word) for word in listed.split()]
        sums = [(a + b) % 10 for a, b in combinations(numbers, 2)]
        assert int(answer) == sums.count(int(expected)) % 10
        assert [int(word) for step in steps for word in step.split(" : ")[1].split()] == sums
        assert steps[-1].split(" : ")[2] == answer


def test_a_search_walks_along_edges_and_goes_back_only_from_where_all_was_tried():
    for given, visited, answer in traced("traces_branching/tree_search"):
        *edges, question = given.split(" ; ")
        root, target = question.split(" to ")
        parent = {child: above for above, child in (edge.split(" > ") for edge in edges)}
        path = [target]
        while path[-1] != root:
            path.append(parent[path[-1]])
        assert answer.split() == path[::-1]
        assert (visited[0], visited[-1]) == (root, target)
        untried = {node: [child for child in parent if parent[child] == node] for node in {root, *parent}}
        for here, there in pairwise(visited):
            if untried[here]:
                assert there == untried[here].pop(0)
            else:
                assert there == parent[here]


@pytest.mark.parametrize(
    ("task", "size", "complaint"),
    [
        ("traces_branching/tree_search", 1, "the target is not the root"),
        ("traces_branching/tree_search", 101, "there are 100 labels"),
        ("traces_branching/inorder_traversal", 101, "there are 100 labels"),
    ],
)
def test_a_size_that_a_task_does_not_have_is_refused(task, size, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        instances(task, [size], trace=True)
