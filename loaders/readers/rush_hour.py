"""Boards of the sliding-block puzzle Rush Hour with their optimal number of moves.

The format of Michael Fogleman's database: one board per line, `moves board cluster`. The board is its 36 cells row by
row: `o` empty, `x` a wall, `A` the car that must leave on the right, other letters the other pieces. The cluster is the
number of reachable positions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition
from ._tensors import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa

SIDE = 6
PLANES = ("car", "wall", "left end", "right end", "across", "upper end", "lower end", "down")
"""What each plane of a board's tensor marks: the car that must leave, walls, and the ends and inner cells of every
piece (including the car), which separates adjacent pieces."""


def read(files: dict[str, Path]) -> pa.Table:
    """Columns `planes` (uint8, 8 x 6 x 6 of 0 and 1; see `PLANES`), `board` (six lines of text), `moves` and
    `positions`."""
    import pyarrow as pa

    if len(files) != 1:
        raise BadDefinition("rush_hour reads one file")
    ((name, path),) = files.items()
    fields = [line.split() for line in path.read_text("ascii").splitlines()]
    for number, line in enumerate(fields):
        if len(line) != 3 or len(line[1]) != SIDE * SIDE or not (line[0].isdigit() and line[2].isdigit()):
            raise BadData(f"{name}: line {number + 1} is not `moves board cluster`")
    cells = np.array([list(line[1].encode()) for line in fields], np.uint8).reshape(-1, SIDE, SIDE)
    text = ["\n".join(line[1][start : start + SIDE] for start in range(0, SIDE * SIDE, SIDE)) for line in fields]
    return pa.table(
        {
            "planes": to_tensor_column(encode_planes(cells)),
            "board": text,
            "moves": [int(line[0]) for line in fields],
            "positions": [int(line[2]) for line in fields],
        }
    )


def encode_planes(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert boards, given as bytes (rows, 6, 6), to planes (rows, 8, 6, 6)."""
    piece = (cells >= ord("A")) & (cells <= ord("Z"))

    def match_neighbour(down: int, right: int) -> NDArray[np.bool_]:
        """Return a mask of the cells whose neighbour in a direction belongs to the same piece."""
        edge = np.pad(cells, ((0, 0), (1, 1), (1, 1)))
        same_piece: NDArray[np.bool_] = piece & (cells == edge[:, 1 + down :, 1 + right :][:, :SIDE, :SIDE])
        return same_piece

    up, below, left, right = (
        match_neighbour(-1, 0),
        match_neighbour(1, 0),
        match_neighbour(0, -1),
        match_neighbour(0, 1),
    )
    marks = [cells == ord("A"), cells == ord("x")]
    marks += [right & ~left, left & ~right, left & right, below & ~up, up & ~below, up & below]
    return np.stack(marks, axis=1).astype(np.uint8)
