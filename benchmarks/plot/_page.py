"""Figure layout: its size, the legend above the panels, and the explanatory note below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ._style import BODY, GREY, NOTE, TITLE
from ._text import count_most_lines, measure_width, wrap_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def make_page(wide: float, body: float, note: str, keys: Sequence[Line2D] = ()) -> Figure:
    """Make an empty figure, `wide` inches wide, with `body` inches of height for its panels, the legend of `keys` above
    them and the wrapped `note` below; its height is the sum of these."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = wrap_text(note, NOTE, 72 * wide - 8)
    handle = 2.6 if any(item.get_linestyle() != "None" for item in keys) else 1.0
    columns, rows = _fit_legend([str(item.get_label()) for item in keys], 72 * wide, handle)
    tall = 1.5 * rows + 1.2 * rows * (count_most_lines(str(item.get_label()) for item in keys) - 1)
    inches = body + (compute_note_height(lines) + BODY * tall + 10) / 72
    figure = Figure(figsize=(wide, inches), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.04, h_pad=0.04)  # type: ignore[union-attr, call-arg]
    figure.supxlabel("\n".join(lines), x=4 / (72 * wide), ha="left", fontsize=NOTE, color=GREY)
    if keys:
        figure.legend(handles=list(keys), loc="outside upper center", ncols=columns, handlelength=handle)
    return figure


def compute_note_height(lines: Sequence[str]) -> float:
    """Return the height of the note's lines in points."""
    return 1.25 * NOTE * len(lines)


def compute_extra_height(titles: Iterable[str], size: float = TITLE) -> float:
    """Return the height in inches that the titles of stacked panels need in addition to one line each."""
    return sum(1.25 * size * text.count("\n") for text in titles) / 72


def _fit_legend(labels: Sequence[str], wide: float, handle: float) -> tuple[int, int]:
    """Return how many columns and rows of legend entries, with handles of `handle` em, fit into `wide` points."""
    if not labels:
        return 0, 0
    # In addition to handle and label, an entry has a space (0.8 em) and its share of the column spacing (1.2 em).
    widest = max(measure_width(line, BODY) for label in labels for line in label.splitlines()) + (handle + 2) * BODY
    columns = max(1, min(len(labels), int(wide // widest)))
    return columns, -(-len(labels) // columns)


def make_axes_grid(figure: Figure, panels: int, columns: int) -> list[Axes]:
    """Make `panels` axes in rows of `columns`."""
    axes = figure.subplots(-(-panels // columns), columns, squeeze=False).ravel().tolist()
    for unused in axes[panels:]:
        unused.remove()
    return axes[:panels]
