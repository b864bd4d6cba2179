"""The board as static pages: an index, and a page per entry. The same board always gives the same bytes."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from ..benchmarks.benchmark import benchmarks
from ..benchmarks.score import in_words
from ..loaders.cache import write_atomically
from ..splits.errors import MissingExtra
from .board import Board
from .standings import tables


def build(board: Board, out: Path | str | None = None) -> Path:
    """Write the pages into `out` (the board's `site/` by default). Returns the path of the index."""
    try:
        from jinja2 import DictLoader, Environment, StrictUndefined
    except ImportError as error:
        raise MissingExtra("the board's pages", "board") from error
    folder = files(__package__) / "templates"
    texts = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith((".html", ".css"))}
    pages = Environment(
        loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    pages.filters |= {"score": _score, "finer": _finer, "words": in_words}
    where = Path(out) if out is not None else board.path / "site"
    standings = board.standings()
    head = board.ledger.records()[-1]
    index = pages.get_template("index.html").render(
        board=board, tables=tables(standings), head=head, entries=len(standings)
    )
    for standing in standings:
        page = pages.get_template("entry.html").render(board=board, row=standing, curve=_curve(standing.score))
        write_atomically(where / "entries" / f"{standing.entry}.html", page.encode())
    write_atomically(where / "index.html", index.encode())
    return where / "index.html"


_SHARE = [0.0, 1.0]
"""The bounds of a score that is shown in percent; any other is shown as it is."""


def _score(value: float, bounds: list[float] | None) -> str:
    return f"{100 * value:.1f}" if bounds == _SHARE else f"{value:.4g}"


def _finer(value: float, bounds: list[float] | None) -> str:
    return f"{100 * value:.2f}" if bounds == _SHARE else f"{value:.5g}"


def _curve(score: dict[str, Any]) -> dict[str, Any] | None:
    """The severity curve in the coordinates of its picture (560 x 215), or None where there is none to draw."""
    curve = sorted(score["severity"], key=lambda point: (point["from"] + point["to"], point["view"]))
    if len(curve) < 2 or score["bounds"] != _SHARE:
        return None
    middles: list[float] = [(point["from"] + point["to"]) / 2 for point in curve]
    low, high = min(middles), max(middles)

    def x(value: float) -> float:
        return round(60.0 + 470.0 * (value - low) / ((high - low) or 1), 1)

    def y(value: float) -> float:
        return round(170.0 - 155.0 * value, 1)

    points = [
        {"x": x(middle), "y": y(p["value"]), "low": y(p["low"]), "high": y(p["high"]), "label": _range(p), "of": p}
        for middle, p in zip(middles, curve, strict=True)
    ]
    labels: list[dict[str, Any]] = []
    for point in points:  # leave out labels that would run into the one before (a digit is about 6 wide)
        if not labels or point["x"] - labels[-1]["x"] > 3.2 * (len(point["label"]) + len(labels[-1]["label"])) + 6:
            labels.append(point)
    return {
        "points": points,
        "labels": labels,
        "ticks": [(value, y(value)) for value in (0, 0.5, 1)],
        "axis": _axis(score["benchmark"]),
    }


def _axis(benchmark: str) -> str:
    """What the benchmark's severity is, such as "output length (actions)"."""
    known = benchmarks().get(benchmark)
    meaning = known.manifest.definition.severity if known is not None else None
    if meaning is None:
        return "severity"
    return f"{meaning.name} ({meaning.unit})" if meaning.unit else meaning.name


def _range(point: dict[str, Any]) -> str:
    ends = [f"{value:g}" for value in (point["from"], point["to"])]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)
