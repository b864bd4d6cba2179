"""Mazes without cycles and the only path through each: the task of Schwarzschild et al. 2021, "Can You Learn an
Algorithm?" (arXiv 2106.04537), as text, reimplemented with a seeded generator (the published one has no seed).

A maze of size n (odd) is an n x n grid of characters. The cells with even row and column are rooms, connected by a
depth-first search that continues to a random unvisited neighbour and backtracks if there is none. Start and goal are
two rooms; the path between them is found by breadth-first search. Mazes of one size are made in parallel.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_bits
from ...core.errors import BadDefinition
from ._rows import count_candidates, find_distinct_rows, format_grids, make_counters

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

_STEPS = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
_WALL, _OPEN, _START, _GOAL, _PATH, _OFF = b"#.SG*_"


def rows(*, seed: str, counts: dict[str, int]) -> pa.Table:
    """`counts["n"]` different mazes of size n. Columns: `maze` (n rows of n characters, spaces between the rows: `#` a
    wall, `.` open, `S` the start, `G` the goal), `path` (the same layout: `*` on the path, ends included, `_` off it),
    `size` (n), `steps` (the path's length: characters from start to goal)."""
    mazes: list[str] = []
    paths: list[str] = []
    steps: list[Ints] = []
    sizes = sorted((int(size), count) for size, count in counts.items())
    for size, count in sizes:
        if size < 3 or size % 2 == 0:
            raise BadDefinition(f"mazes: size = {size}: must be odd and at least 3")
        maze, path, length = _draw_mazes(f"{seed}/{size}", size, count)
        mazes += format_grids(maze, "", " ")
        paths += format_grids(path, "", " ")
        steps.append(length)
    return pa.table(
        {
            "maze": mazes,
            "path": paths,
            "size": np.repeat([size for size, _ in sizes], [count for _, count in sizes]),
            "steps": np.concatenate(steps),
        }
    )


def _draw_mazes(stream: str, size: int, count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], Ints]:
    """Draw `count` distinct mazes of one size and their paths, (count, size, size), and the paths' lengths,
    (count,)."""
    draw_count = count_candidates(count) if size < 13 else count
    rooms = (size + 1) // 2
    corridors = carve_mazes(stream, size, draw_count)
    start = draw_below(f"{stream}/start", make_counters(draw_count), rooms**2)
    goal = (start + 1 + draw_below(f"{stream}/goal", make_counters(draw_count), rooms**2 - 1)) % rooms**2
    ends = [np.stack(np.divmod(room, rooms), axis=1) * 2 for room in (start, goal)]
    maze = np.where(corridors, _OPEN, _WALL).astype(np.uint8)
    every = np.arange(draw_count)
    for end, letter in zip(ends, (_START, _GOAL), strict=True):
        maze[every, end[:, 0], end[:, 1]] = letter
    indices = find_distinct_rows(maze.reshape(draw_count, -1), count)
    if len(indices) < count:
        raise BadDefinition(f"mazes: only {len(indices)} different mazes of size {size}, but {count} are required")
    path, length = solve_mazes(corridors[indices], ends[0][indices], ends[1][indices])
    return maze[indices], np.where(path, _PATH, _OFF).astype(np.uint8), length


def carve_mazes(stream: str, size: int, count: int) -> Flags:
    """Return the open cells of `count` mazes, (count, size, size), by depth-first search; each step of the search is
    done for all mazes at once."""
    rooms = (size + 1) // 2
    every, counter = np.arange(count), make_counters(count)
    # Rooms are padded with visited ones, so that no step needs a check for the edge.
    visited = np.ones((count, rooms + 2, rooms + 2), bool)
    visited[:, 1:-1, 1:-1] = False
    came_from = np.zeros((count, rooms + 2, rooms + 2), np.int64)
    is_open = np.zeros((count, size, size), bool)
    at = 1 + np.stack([draw_below(f"{stream}/{axis}", counter, rooms) for axis in ("row", "column")], axis=1)
    visited[every, at[:, 0], at[:, 1]] = True
    is_open[every, 2 * at[:, 0] - 2, 2 * at[:, 1] - 2] = True
    # A search enters and leaves each room except the first exactly once.
    for step in range(2 * (rooms**2 - 1)):
        near = at[:, None, :] + _STEPS
        free = ~visited[every[:, None], near[..., 0], near[..., 1]]
        # Four 16-bit numbers plus 1 choose among the free neighbours: the largest wins, ties go to the first.
        draw = draw_bits(f"{stream}/search", np.uint64(step * count) + counter).astype("<u8").view("<u2")
        way = ((draw.reshape(count, 4) + np.int64(1)) * free).argmax(axis=1)
        on = free.any(axis=1)
        way = np.where(on, way, came_from[every, at[:, 0], at[:, 1]])
        between = 2 * at - 2 + _STEPS[way]
        at = at + _STEPS[way]
        forward, cells = every[on], at[on]
        visited[forward, cells[:, 0], cells[:, 1]] = True
        came_from[forward, cells[:, 0], cells[:, 1]] = (way[on] + 2) % 4
        is_open[forward, between[on, 0], between[on, 1]] = True
        is_open[forward, 2 * cells[:, 0] - 2, 2 * cells[:, 1] - 2] = True
    return is_open


def solve_mazes(is_open: Flags, start: Ints, goal: Ints) -> tuple[Flags, Ints]:
    """Return the shortest path of each maze, ends included, (n, size, size), and its number of steps, (n,):
    breadth-first search from the goal in all mazes at once, then descent along the distances from the start."""
    count, size, _ = is_open.shape
    every = np.arange(count)
    distance = np.full((count, size + 2, size + 2), -1)
    blocked = np.ones((count, size + 2, size + 2), bool)
    blocked[:, 1:-1, 1:-1] = ~is_open
    front = np.column_stack([every, goal + 1])
    reached = 0
    while len(front):
        maze, y, x = front.T
        distance[maze, y, x] = reached
        blocked[maze, y, x] = True
        near = (front[:, None, 1:] + _STEPS).reshape(-1, 2)
        maze = np.repeat(maze, len(_STEPS))
        fresh = ~blocked[maze, near[:, 0], near[:, 1]]
        front = np.unique(np.column_stack([maze, near])[fresh], axis=0)
        reached += 1
    at = start + 1
    length: Ints = distance[every, at[:, 0], at[:, 1]]
    path = np.zeros_like(blocked)
    path[every, at[:, 0], at[:, 1]] = True
    for _ in range(int(length.max())):
        near = at[:, None, :] + _STEPS
        steps = distance[every[:, None], near[..., 0], near[..., 1]]
        current_distance = distance[every, at[:, 0], at[:, 1]]
        nearer = steps == current_distance[:, None] - 1
        at = np.where((current_distance > 0)[:, None], at + _STEPS[(nearer & (steps >= 0)).argmax(axis=1)], at)
        path[every, at[:, 0], at[:, 1]] = True
    return path[:, 1:-1, 1:-1], length
