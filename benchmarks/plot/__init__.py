"""Pictures of score records: one file each, found by its name, so that a new picture is a new file.

A picture module has `picture(records) -> Figure`. Its docstring says what the picture shows. It is called under the
house's style and sees records that are whole; it raises `FarshiftError` where they cannot be drawn together.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError
from ...core.figures import drawn_with
from ...core.files import write_atomically
from ...core.plugins import module, named
from ..scoring.record import Score
from ._page import note_height
from ._panels import checked, protocol
from ._style import SETTINGS, TITLE
from ._text import folded, height

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".pdf", ".png", ".svg")


def pictures() -> list[str]:
    """The names of the pictures there are, sorted."""
    return sorted(named("benchmarks/plot", ".py"))


def figure(records: Sequence[Score], what: str, *, title: str = "", note: bool = True) -> Figure:
    """The picture `what` as a matplotlib `Figure`, laid out, to show or to change. `title`: above all of it; `note`:
    whether what the bars and brackets mean stands beneath (`note_of` has it for a caption).

    Raises `UnknownName` for a picture there is not, `MissingExtra` without matplotlib, and `FarshiftError` where these
    records cannot be drawn together: no severity, no class probabilities, another kind of shift, different metrics."""
    drawing = module("benchmarks/plot", what, "picture")
    checked(records)
    with drawn_with(SETTINGS):
        made: Figure = drawing.picture(records)
        finish(made, title, note)
        # Ticks are made when first laid out: now, while the settings hold.
        made.draw_without_rendering()
    return made


def finish(made: Figure, title: str, note: bool) -> None:
    """Give a picture its title, and take its note away where none is wanted; its panels keep their size."""
    wide, inches = made.get_size_inches().tolist()
    if not note:
        inches -= note_height(made.get_supxlabel().splitlines()) / 72
        made.supxlabel("")
    if title:
        text = folded([title], TITLE, 72 * wide - 24)[title]
        had = made.legends[0].get_title().get_text() if made.legends else ""
        inches += 1.25 * TITLE * (height([text]) - (height([had]) if had else 0)) / 72
        if made.legends:
            made.legends[0].set_title(text)
            made.legends[0].get_title().set_fontsize(TITLE)
        else:
            made.suptitle(text, fontsize=TITLE)
            inches += 4 / 72
    made.set_size_inches(wide, inches)


def note_of(records: Sequence[Score], what: str) -> str:
    """What stands beneath the picture `what` of these records, as one text. Raises as `figure`."""
    return figure(records, what).get_supxlabel().replace("\n", " ")


def draw(records: Sequence[Score], what: str, out: Path | str, *, title: str = "", note: bool = True) -> Path:
    """Write the picture `what` to `out` as PNG (300 dots an inch), SVG or PDF, by its suffix, whole or not at all.

    The same records give the same bytes under one version of matplotlib. Raises as `figure`, and `FarshiftError` for
    another suffix or where `out` cannot be written."""
    out = writable(out)
    made = figure(records, what, title=title, note=note)
    of = "; ".join(f"{r.model} on {protocol(r)}, identity {r.entry_identity}" for r in records)
    return save(made, out, title or f"Farshift: {what}", f"{of}; scorer {records[0].scorer}")


def writable(out: Path | str) -> Path:
    """The place of a picture; `FarshiftError` where its suffix names no format that pictures have."""
    out = Path(out)
    if out.suffix.lower() not in SUFFIXES:
        raise FarshiftError(f"{out}: a picture is written as {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    return out


def save(made: Figure, out: Path | str, title: str, description: str) -> Path:
    """Write a figure in the format of the suffix of `out`, whole or not at all; its file says `title` and what it was
    drawn from."""
    out = writable(out)
    kind = out.suffix.lower()
    content = BytesIO()
    with drawn_with(SETTINGS):
        made.savefig(content, format=kind[1:], metadata=_metadata(kind, title, description))
    write_atomically(out, content.getvalue(), "write it to another place")
    return out


def _metadata(kind: str, title: str, description: str) -> dict[str, Any]:
    """What the file says of itself: no date and no version, which would change its bytes."""
    if kind == ".png":
        return {"Title": title, "Description": description, "Software": None}
    if kind == ".svg":
        return {"Title": title, "Description": description, "Creator": None, "Date": None}
    return {"Title": title, "Subject": description, "Creator": None, "Producer": None, "CreationDate": None}
