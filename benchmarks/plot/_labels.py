"""Direct labels: names at the ends of lines or next to points, without overlaps, if there are few of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ._style import BODY, Look
from ._text import measure_width

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.path import Path
    from matplotlib.transforms import Bbox


def label_ends(axes: Axes, ends: Mapping[str, tuple[float, float, Look]]) -> None:
    """Write each name to the right of the axes, as near as possible to the height of its line's end (x, y)."""
    labels = [
        axes.annotate(
            name,
            (x, y),
            xytext=(1.04, y),
            textcoords=("axes fraction", "data"),
            va="center",
            color=look.colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": look.colour, "lw": 0.6, "shrinkA": 1, "shrinkB": 4},
        )
        for name, (x, y, look) in ends.items()
    ]
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    points = axes.get_window_extent().height * 72 / figure.dpi
    low, high = axes.get_ylim()
    heights = spread_positions([y for _, y, _ in ends.values()], 1.25 * BODY * (high - low) / points, low, high)
    for label, height in zip(labels, heights, strict=True):
        label.set_position((1.04, height))


def spread_positions(targets: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Return the positions nearest to `targets` by least squares, in the same order, at least `least` apart and between
    `low` and `high` (from `low` upwards if they do not fit).

    After subtracting k * least from the k-th, this is isotonic regression with bounds: pool adjacent violators, then
    clip."""
    order = sorted(range(len(targets)), key=lambda index: targets[index])
    pools: list[list[float]] = []
    for rank, index in enumerate(order):
        pools.append([targets[index] - rank * least])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    level = [fmean(pool) for pool in pools for _ in pool]
    top = max(low, high - (len(targets) - 1) * least)
    placed = [0.0] * len(targets)
    for rank, index in enumerate(order):
        placed[index] = min(max(level[rank], low), top) + rank * least
    return placed


SIDES = ((1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1))
"""Label positions relative to the point, in order of preference: right, left, the corners, above, below."""


def label_points(axes: Axes, points: Mapping[str, tuple[float, float, Look]]) -> bool:
    """Write each name next to its point (x, y), where it overlaps no line, bar, point, other label or edge of the axes.

    Returns False, and writes nothing, if one of them does not fit. The axes must be laid out already."""
    from matplotlib.transforms import Bbox

    figure = axes.get_figure(root=True)
    assert figure is not None
    dot = figure.dpi / 72
    artist_paths: list[tuple[Artist, Path]] = [(bars, path) for bars in axes.collections for path in bars.get_paths()]
    artist_paths += [(line, line.get_path()) for line in axes.lines if len(line.get_path()) > 1]
    paths = [artist.get_transform().transform_path(path) for artist, path in artist_paths]
    frame = axes.get_window_extent()
    centres = {name: axes.transData.transform((x, y)) for name, (x, y, _) in points.items()}
    markers = [Bbox.from_bounds(x - 3 * dot, y - 3 * dot, 6 * dot, 6 * dot) for x, y in centres.values()]
    placed: dict[str, tuple[Bbox, tuple[float, float]]] = {}
    for name, (at_x, at_y) in centres.items():
        wide, high = measure_width(name, BODY) * dot, 1.1 * BODY * dot
        for side_x, side_y in SIDES:
            reach_x, reach_y = (6 if side_y == 0 else 4) * dot, (6 if side_x == 0 else 4) * dot
            left = at_x + side_x * reach_x - wide * (1 - side_x) / 2
            low = at_y + side_y * reach_y - high * (1 - side_y) / 2
            box = Bbox.from_bounds(left, low, wide, high)
            if _is_free(box, frame, [*markers, *(other for other, _ in placed.values())], paths, 1.5 * dot):
                placed[name] = box, ((left - at_x) / dot, (low - at_y) / dot)
                break
        else:
            return False
    for name, (_, offset) in placed.items():
        x, y, look = points[name]
        axes.annotate(name, (x, y), xytext=offset, textcoords="offset points", color=look.colour, va="bottom")
    return True


def _is_free(box: Bbox, frame: Bbox, boxes: Sequence[Bbox], paths: Sequence[Path], air: float) -> bool:
    """Return whether the box is inside the frame, overlaps no other box, and is at least `air` from every path."""
    inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
    around = box.padded(air)
    clear = not any(box.overlaps(other) for other in boxes)
    return inside and clear and not any(path.intersects_bbox(around, filled=False) for path in paths)
