"""Plots of score records, one file each. To add a plot, add a file.

A plot module has `picture(records) -> Figure`, whose docstring describes the plot. It is called with the common style,
and the records it receives are complete; it raises `FarshiftError` if they cannot be drawn together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError, MissingExtra
from ...core.files import write_atomically
from ...core.plugins import load_module
from ..scoring.record import Score
from ._panels import check_records, format_protocol
from ._style import LETTER, SETTINGS, TITLE, fold

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".pdf", ".png", ".svg")


def make_figure(records: Sequence[Score], what: str, *, title: str = "", note: bool = True) -> Figure:
    """Make the plot `what` as a matplotlib `Figure`, already laid out. `title`: above the figure; `note`: whether to
    print the explanation of bars and brackets below it (`get_plot_note` returns it for use in a caption).

    Raises `UnknownName` for an unknown plot, `MissingExtra` without matplotlib, and `FarshiftError` if the records
    cannot be drawn together: no severity, no class probabilities, another kind of shift, different metrics."""
    drawing = load_module("benchmarks/plot", what, "figure")
    check_records(records)
    with _use_settings():
        plot: Figure = drawing.picture(records)
        if title and plot.legends:  # a title of the figure would lie on the legend
            plot.legends[0].set_title(fold(title, int(72 * plot.get_figwidth() / TITLE / LETTER)))
            plot.legends[0].get_title().set_fontsize(TITLE)
        elif title:
            plot.suptitle(title, fontsize=TITLE, wrap=True)
        if not note:
            plot.supxlabel("")
        # Ticks are created by the first layout, which must run while the style is active.
        plot.draw_without_rendering()
    return plot


def get_plot_note(records: Sequence[Score], what: str) -> str:
    """Return the note below the plot `what` of these records as one text. Raises as `make_figure`."""
    return make_figure(records, what).get_supxlabel().replace("\n", " ")


def draw_plot(records: Sequence[Score], what: str, out: Path | str, *, title: str = "", note: bool = True) -> Path:
    """Write the plot `what` atomically to `out` as PNG (300 dpi), SVG or PDF, by its suffix.

    The same records give the same bytes with the same version of matplotlib. Raises as `make_figure`, and
    `FarshiftError` for another suffix or if `out` cannot be written."""
    out = Path(out)
    kind = out.suffix.lower()
    if kind not in SUFFIXES:
        raise FarshiftError(f"{out}: a figure is written as {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    plot = make_figure(records, what, title=title, note=note)
    of = "; ".join(f"{r.model} on {format_protocol(r)}, identity {r.entry_identity}" for r in records)
    metadata = _make_metadata(kind, title or f"Farshift: {what}", f"{of}; scorer {records[0].scorer}")
    content = BytesIO()
    with _use_settings():
        plot.savefig(content, format=kind[1:], metadata=metadata)
    write_atomically(out, content.getvalue(), "write it to another place")
    return out


def _make_metadata(kind: str, title: str, description: str) -> dict[str, Any]:
    """Return the file's metadata, without date and version, which would change its bytes."""
    if kind == ".png":
        return {"Title": title, "Description": description, "Software": None}
    if kind == ".svg":
        return {"Title": title, "Description": description, "Creator": None, "Date": None}
    return {"Title": title, "Subject": description, "Creator": None, "Producer": None, "CreationDate": None}


@contextmanager
def _use_settings() -> Iterator[None]:
    """Within the context matplotlib has the common style, whatever the user's settings are."""
    try:
        from matplotlib.style import context
    except ImportError as error:
        raise MissingExtra("plotting", "plot") from error
    with context(SETTINGS, after_reset=True):
        yield
