"""Algorithms that process their input once, with the answer alone or after a trace of every step.

Simulation, iteration, greedy choice and dynamic programming, after the idea of TAIL (Hua et al. 2025, arXiv
2507.13332): a trace writes out all that the algorithm does, in order, as a Turing machine would on its tape. The
paper's data are not published; tasks, traces and draws are new. Steps are joined by ";"; the answer follows "=".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ._contract import Draws, Examples, format_numbers, format_words, make_traced_examples

_REGISTERS = "abcd"


def register_machine(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Simulation: `length` instructions over four registers modulo 10, all 0 at first; the answer is all four.

    "a = 3" sets and "a + 3" adds a number, "a = b" copies and "a + b" adds a register. A step of the trace is the
    register that was written and its new value.
    """
    targets, sources = draws.below("target", 4, length), draws.below("source", 4, length)
    adds, numbers = draws.below("adds", 2, length), draws.below("number", 10, length)
    by_register = draws.below("by_register", 2, length)
    inputs, answers, steps = [], [], []
    for row in zip(*(x.tolist() for x in (targets, sources, adds, numbers, by_register)), strict=True):
        values, program, row_steps = [0] * 4, [], []
        for target, source, add, number, register in zip(*row, strict=True):
            operand = values[source] if register else number
            values[target] = (values[target] * add + operand) % 10
            source_text = _REGISTERS[source] if register else number
            program.append(f"{_REGISTERS[target]} {'+' if add else '='} {source_text}")
            row_steps.append(f"{_REGISTERS[target]} {values[target]}")
        inputs.append(" ; ".join(program))
        answers.append(" ".join(map(str, values)))
        steps.append(row_steps)
    return make_traced_examples(inputs, answers, steps, trace)


def digit_product(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Iteration: a number of `length` digits times one digit, with a leading zero if there is no last carry.

    A step of the trace, from the lowest digit on, is that digit, the carry into it, the digit written and the carry
    out of it.
    """
    digits, factor = draws.below("digits", 10, length), 2 + draws.number("factor", 8)
    product, carry = np.zeros((draws.rows, length + 1), np.int64), np.zeros(draws.rows, np.int64)
    moves = []
    for at in range(length - 1, -1, -1):
        before, column = carry, digits[:, at] * factor + carry
        product[:, at + 1], carry = column % 10, column // 10
        moves.append(format_words(np.stack([digits[:, at], before, product[:, at + 1], carry], axis=1)))
    product[:, 0] = carry
    inputs = [f"{number} * {by}" for number, by in zip(format_words(digits), factor.tolist(), strict=True)]
    return make_traced_examples(inputs, format_words(product), list(zip(*moves, strict=True)), trace)


def interval_schedule(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Greedy choice: the largest set of intervals that do not overlap, chosen by earliest end; the answer is the ends
    of the chosen intervals.

    `length` different intervals between 0 and 99, sorted by end, then start; one may begin where another ends. A step
    of the trace is the interval's start, the end of the last chosen one, and "take" or "skip".
    """
    # Each number below 4,950 encodes a pair start < end as end (end - 1) / 2 + start, so sorting them sorts by end.
    chosen = np.sort(draws.below("intervals", 4950, length), axis=1)
    different = np.logical_and.reduce(chosen[:, 1:] > chosen[:, :-1], axis=1)
    ends = ((1 + np.sqrt(1 + 8 * chosen)) // 2).astype(np.int64)
    starts = chosen - ends * (ends - 1) // 2
    inputs, answers, steps = [], [], []
    for row_starts, row_ends in zip(starts.tolist(), ends.tolist(), strict=True):
        free, selected_ends, row_steps = 0, [], []
        for start, end in zip(row_starts, row_ends, strict=True):
            row_steps.append(f"{start} {free} {'take' if start >= free else 'skip'}")
            if start >= free:
                free = end
                selected_ends.append(str(end))
        inputs.append(" ; ".join(f"{start} {end}" for start, end in zip(row_starts, row_ends, strict=True)))
        answers.append(" ".join(selected_ends))
        steps.append(row_steps)
    return replace(make_traced_examples(inputs, answers, steps, trace), is_valid=different)


def increasing_subsequences(draws: Draws, length: int, *, trace: bool) -> Examples:
    """Dynamic programming: how many strictly increasing subsequences `length` numbers below 100 have, modulo 10.

    A subsequence has at least one number. A step of the trace is a number and how many end with it, modulo 10.
    """
    numbers = draws.below("numbers", 100, length)
    ending = np.ones((draws.rows, length), np.int64)
    for at in range(1, length):
        smaller = numbers[:, :at] < numbers[:, at : at + 1]
        ending[:, at] = (1 + np.where(smaller, ending[:, :at], 0).sum(axis=1)) % 10
    moves = [format_words(np.stack([numbers[:, at], ending[:, at]], axis=1)) for at in range(length)]
    return make_traced_examples(
        format_words(numbers), format_numbers(ending.sum(axis=1) % 10), list(zip(*moves, strict=True)), trace
    )
