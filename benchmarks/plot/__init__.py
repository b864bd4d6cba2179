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
from ._style import SETTINGS, TITLE, compute_note_height, count_most_lines, fold_names

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
        finish_figure(plot, title, note)
        # Ticks are created by the first layout, which must run while the style is active.
        plot.draw_without_rendering()
    return plot


def finish_figure(plot: Figure, title: str, note: bool) -> None:
    """Add the title to a figure, and remove its note unless `note`; panels keep their size."""
    wide, inches = plot.get_size_inches().tolist()
    if not note:
        inches -= compute_note_height(plot.get_supxlabel().splitlines()) / 72
        plot.supxlabel("")
    if title:
        text = fold_names([title], TITLE, 72 * wide - 24)[title]
        old_title = plot.legends[0].get_title().get_text() if plot.legends else ""
        inches += 1.25 * TITLE * (count_most_lines([text]) - (count_most_lines([old_title]) if old_title else 0)) / 72
        if plot.legends:
            plot.legends[0].set_title(text)
            plot.legends[0].get_title().set_fontsize(TITLE)
        else:
            plot.suptitle(text, fontsize=TITLE)
            inches += 4 / 72
    plot.set_size_inches(wide, inches)


def get_plot_note(records: Sequence[Score], what: str) -> str:
    """Return the note below the plot `what` of these records as one text. Raises as `make_figure`."""
    return make_figure(records, what).get_supxlabel().replace("\n", " ")


def draw_plot(records: Sequence[Score], what: str, out: Path | str, *, title: str = "", note: bool = True) -> Path:
    """Write the plot `what` atomically to `out` as PNG (300 dpi), SVG or PDF, by its suffix.

    The same records give the same bytes with the same version of matplotlib. Raises as `make_figure`, and
    `FarshiftError` for another suffix or if `out` cannot be written."""
    out = check_plot_path(out)
    plot = make_figure(records, what, title=title, note=note)
    of = "; ".join(f"{r.model} on {format_protocol(r)}, identity {r.entry_identity}" for r in records)
    return save_figure(plot, out, title or f"Farshift: {what}", f"{of}; scorer {records[0].scorer}")


def check_plot_path(out: Path | str) -> Path:
    """Return the path of a figure file; raises `FarshiftError` if its suffix is not a supported format."""
    out = Path(out)
    if out.suffix.lower() not in SUFFIXES:
        raise FarshiftError(f"{out}: a figure is written as {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    return out


def save_figure(plot: Figure, out: Path | str, title: str, description: str) -> Path:
    """Write a figure atomically in the format given by the suffix of `out`; `title` and `description` are stored in the
    file's metadata."""
    out = check_plot_path(out)
    kind = out.suffix.lower()
    content = BytesIO()
    with _use_settings():
        plot.savefig(content, format=kind[1:], metadata=_make_metadata(kind, title, description))
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
