"""Puzzles solved from their text alone, by other means than those that made them."""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from fractions import Fraction

STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))
REWRITES = {("A#", "#A"): [], ("B#", "#B"): [], ("A#", "#B"): ["#B", "A#"], ("B#", "#A"): ["#A", "B#"]}


def ab(text):
    program, at = re.search(r"program:\n\n(.+)\n", text)[1].split(), 0
    while at < len(program) - 1:
        new = REWRITES.get((program[at], program[at + 1]))
        program[at : at + 2] = program[at : at + 2] if new is None else new
        at = at + 1 if new is None else max(at - 1, 0)
    return " ".join(program)


def base_and_value(text):
    """The number that is to be written in another base, and that base."""
    base, digits, other = re.search(r"convert the (\S+) number (\S+) to (\S+)", text).groups()
    bases = {"binary": 2, "hexadecimal": 16}
    old, new = (bases.get(item) or int(item.removeprefix("base-")) for item in (base, other))
    return int(digits, old), new


def base_conversion(text):
    (value, new), result = base_and_value(text), ""
    while value:
        value, digit = divmod(value, new)
        result = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + result
    return result


def basic_arithmetic(text):
    return str(eval(re.sub(r"\d+", r"Fraction(\g<0>)", text.removeprefix("Calculate ").removesuffix(".")), {"Fraction": Fraction}))  # fmt: skip


def grid(text):
    return [line.split() for line in text.splitlines() if re.fullmatch(r"[0-4_]( [0-4_])+", line)]


def binary_matrix(text):
    cells = grid(text)
    zeros = [(i, j) for i, row in enumerate(cells) for j, cell in enumerate(row) if cell == "0"]
    every = range(len(cells))
    return "\n".join(" ".join(str(min(abs(i - x) + abs(j - y) for x, y in zeros)) for j in every) for i in every)


def course_schedule(text):
    pairs = [(int(a), int(b)) for a, b in re.findall(r"\((\d+), (\d+)\)", text)]
    left = set(range(int(re.search(r"total of (\d+)", text)[1])))
    while free := left - {a for a, b in pairs if b in left}:
        left -= free
    return str(not left)


def dice(text):
    sizes = [int(size) for size in re.findall(r"1d(\d+)", text.split("What")[0])]
    sums = Counter({0: 1})
    for size in sizes:
        new: Counter = Counter()
        for total, ways in sums.items():
            new.update({total + face: ways for face in range(1, size + 1)})
        sums = new
    least = int(re.search(r"rolling (\d+) or higher", text)[1])
    odds = Fraction(sum(ways for total, ways in sums.items() if total >= least), math.prod(sizes))
    return f"{odds.numerator}/{odds.denominator}"


def lcm(text):
    return str(math.lcm(*map(int, text.split(": ")[1].split(", "))))


def maze(text):
    start, goal = re.match(r"Navigate from '(.)' \(start\) to '(.)' \(goal\)", text).groups()
    wall = re.search(r"Legend: '(.)' = Wall", text)[1]
    lines = re.search(r"```\n(.*)\n```\n", text, re.DOTALL)[1].split("\n")
    cells = {(i, j): cell for i, line in enumerate(lines) for j, cell in enumerate(line) if cell != wall}
    first = next(position for position, cell in cells.items() if cell == start)
    steps, queue = {first: 0}, deque([first])
    while queue:
        i, j = queue.popleft()
        for position in ((i + x, j + y) for x, y in STEPS):
            if position in cells and position not in steps:
                steps[position] = steps[i, j] + 1
                queue.append(position)
    return str(next(steps[position] for position, cell in cells.items() if cell == goal))


def mini_sudoku(text):
    """All solutions, one after the other: the answer where there is one."""
    result: list[str] = []

    def fill(cells):
        empty = next(((i, j) for i in range(4) for j in range(4) if cells[i][j] == "_"), None)
        if empty is None:
            result.append("\n".join(map(" ".join, cells)))
            return
        i, j = empty
        box = {cells[i // 2 * 2 + x][j // 2 * 2 + y] for x in (0, 1) for y in (0, 1)}
        for digit in sorted({"1", "2", "3", "4"} - set(cells[i]) - {row[j] for row in cells} - box):
            fill([[digit if (x, y) == empty else cells[x][y] for y in range(4)] for x in range(4)])

    fill(grid(text))
    return "\n\n".join(result)


def prime_factorization(text):
    left, factor, result = int(re.search(r"of (\d+)\. Write", text)[1]), 2, []
    while left > 1:
        if left % factor == 0:
            left //= factor
            result.append(str(factor))
        else:
            factor = factor + 1 if factor * factor <= left else left
    return " × ".join(result)


def rotten_oranges(text):
    cells, minutes = grid(text), 0
    places = {(i, j): cell for i, row in enumerate(cells) for j, cell in enumerate(row)}
    while "1" in places.values():
        rotten = {position for position, cell in places.items() if cell == "2"}
        reached = {(i + x, j + y) for i, j in rotten for x, y in STEPS}
        new = {position for position in reached if places.get(position) == "1"}
        if not new:
            return "-1"
        places.update(dict.fromkeys(new, "2"))
        minutes += 1
    return str(minutes)


def simple_equations(text):
    """The root of the line through the values at 0 and 1; a third value says that it is a line."""
    left, right = text.split(": ")[1].split(" = ")
    at = [eval(re.sub(r"[a-z]", f"({value})", left), {}) - int(right) for value in (0, 1, 5)]
    assert at[2] - at[0] == 5 * (at[1] - at[0])
    return str(Fraction(-at[0], at[1] - at[0]))


def simple_geometry(text):
    sides = int(next(filter(None, re.search(r"(\d+) sides|(\d+)-gon", text).groups())))
    angles = [float(angle) for angle in re.findall(r"([\d.]+)°", text)]
    last = (sides - 2) * 180 - sum(angles)
    assert len(angles) == sides - 1 and 0 < last < 180, "the polygon is convex"
    return f"{last:g}"


SOLVERS = {
    solve.__name__: solve
    for solve in (
        *(ab, base_conversion, basic_arithmetic, binary_matrix, course_schedule, dice, lcm, maze, mini_sudoku),
        *(prime_factorization, rotten_oranges, simple_equations, simple_geometry),
    )
}
