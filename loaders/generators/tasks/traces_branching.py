"""Algorithms that branch, split or search, with the answer alone or after a trace of every step.

Recursion, divide and conquer, enumeration and backtracking, after the idea of TAIL (Hua et al. 2025, arXiv
2507.13332): a trace writes out all that the algorithm does, in order, as a Turing machine would on its tape. The
paper's data are not published; tasks, traces and draws are new. Steps are joined by ";"; the answer follows "=".
"""

from __future__ import annotations

import numpy as np

from ._contract import Draws, Examples, Tape, format_words, make_traced_examples, require

_LABELS = 100


def inorder_traversal(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Recursion: the labels of a binary tree of `length` nodes, left subtree, node, right subtree.

    The tree is given node, left subtree, right subtree, with "." for an empty one. A step of the trace goes "down" to
    a node, is "at" it, or comes "up" from it.
    """
    require(length <= _LABELS, length, f"there are {_LABELS} labels")
    trees = [_Traversal(tape, length) for tape in draws.tapes("tree")]
    answers = [" ".join(tree.order) for tree in trees]
    return make_traced_examples(
        [" ".join(tree.given) for tree in trees], answers, [tree.moves for tree in trees], trace
    )


class _Traversal:
    """Draw a tree, and return it with its traversal."""

    def __init__(self, tape: Tape, nodes: int) -> None:
        self.given: list[str] = []
        self.order: list[str] = []
        self.moves: list[str] = []
        self._tape, self._labels = tape, [str(label) for label in tape.shuffled(range(_LABELS))]
        self._visit(nodes)

    def _visit(self, nodes: int) -> None:
        if nodes == 0:
            self.given.append(".")
            return
        label, left = self._labels.pop(), self._tape.below(nodes)
        self.given.append(label)
        self.moves.append(f"down {label}")
        self._visit(left)
        self.order.append(label)
        self.moves.append(f"at {label}")
        self._visit(nodes - 1 - left)
        self.moves.append(f"up {label}")


def merge_sort(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Divide and conquer: `length` numbers below 100, sorted.

    A step of the trace is one round of merges: the sorted runs of 2, 4, 8 .. numbers, with "|" between them.
    """
    numbers = draws.below("numbers", 100, length)
    steps = []
    for row in numbers.tolist():
        width, rounds = 2, []
        while width < 2 * length:
            runs = [sorted(row[start : start + width]) for start in range(0, length, width)]
            rounds.append(" | ".join(" ".join(map(str, run)) for run in runs))
            width *= 2
        steps.append(rounds)
    return make_traced_examples(format_words(numbers), format_words(np.sort(numbers, axis=1)), steps, trace)


def pair_sums(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Enumeration: how many pairs among `length` numbers below 10 have the given sum; sum and number modulo 10.

    A step of the trace is a number, its sums with the numbers after it, and the number of pairs so far.
    """
    numbers, targets = draws.below("numbers", 10, length), draws.number("wanted", 10).tolist()
    inputs, answers, steps = [], [], []
    for row, target in zip(numbers.tolist(), targets, strict=True):
        count, row_steps = 0, []
        for index, number in enumerate(row[:-1]):
            sums = [(number + other) % 10 for other in row[index + 1 :]]
            count = (count + sums.count(target)) % 10
            row_steps.append(f"{number} : {' '.join(map(str, sums))} : {count}")
        inputs.append(f"{' '.join(map(str, row))} : {target}")
        answers.append(str(count))
        steps.append(row_steps)
    return make_traced_examples(inputs, answers, steps, trace)


def tree_search(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Backtracking: the path from the root of a tree of `length` nodes to one of them, found depth first.

    The edges are given as parent > child in random order, then root and target. The search tries the children of a node
    in the order of their edges; the trace has every node that is visited, including when it backtracks.
    """
    require(2 <= length <= _LABELS, length, f"there are {_LABELS} labels, and the target is not the root")
    inputs, answers, steps = [], [], []
    for tape in draws.tapes("tree"):
        labels = tape.shuffled(range(_LABELS))[:length]
        edges = tape.shuffled([(labels[tape.below(child)], labels[child]) for child in range(1, length)])
        target = labels[1 + tape.below(length - 1)]
        children: dict[int, list[int]] = {label: [] for label in labels}
        for parent, child in edges:
            children[parent].append(child)
        path, visited = [labels[0]], [labels[0]]
        while path[-1] != target:
            if children[path[-1]]:
                path.append(children[path[-1]].pop(0))
            else:
                path.pop()
            visited.append(path[-1])
        inputs.append(" ; ".join([*(f"{parent} > {child}" for parent, child in edges), f"{labels[0]} to {target}"]))
        answers.append(" ".join(map(str, path)))
        steps.append([str(node) for node in visited])
    return make_traced_examples(inputs, answers, steps, trace)
