"""A page of a board's site: a path, a template, and the template's variables; the environment of the templates; and how
pages show scores, as text and as small graphics in the rows of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ...benchmarks.plot._style import MINUS
from ...benchmarks.scoring.record import format_estimate
from ...benchmarks.scoring.trained_check import MARK
from ...benchmarks.statistics.interval import Estimate, read_interval
from ...core.errors import MissingExtra
from ...core.settings import get_version
from ...core.text import LINES, escape_untrusted
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table
from .svg import Axis, draw_legend_key

if TYPE_CHECKING:
    from jinja2 import Environment

INDEX = "index.html"

SHARE = (0.0, 1.0)
"""The bounds of a score that is shown in percent; other scores are shown unscaled."""

STRIP, BAR, _EDGE = 130, 80, 5
"""Widths of the strip of intervals and of a rank set's bar, with a margin of 5 on either side."""

_PAPER = re.compile(r"(?P<arxiv>arXiv:(\d{4}\.\d{4,5}))|(?P<doi>doi:(10\.\S+?)(?=\)?[.,;]?(?:\s|$)))")

LINKS = (
    ("Home", "index.html"),
    ("Benchmarks", "benchmarks/index.html"),
    ("Compare", "compare/index.html"),
    ("Submit", "submit.html"),
    ("Sealed", "windows.html"),
    ("Ledger", "ledger.html"),
    ("About", "about.html"),
)
"""The main pages; those that a site has are linked from every page."""


@dataclass(frozen=True)
class Frame:
    """What the pages of a site share. paths: all files of the site; files: where the board's files are, as in `Site`.

    Of the board, the frame around a page shows only the name. So a new record changes few pages, and browsers keep the
    others cached by their entity tags."""

    board: Snapshot
    paths: frozenset[str]
    files: str | None = None

    @property
    def links(self) -> list[tuple[str, str]]:
        """Return the title and path of each main page of this site."""
        return [(title, path) for title, path in LINKS if path in self.paths]

    def section(self, here: str) -> str:
        """Return the main page that the page `here` belongs to: the index of its folder, the page of the folder's name,
        or itself."""
        folder = here.rpartition("/")[0].partition("/")[0]
        return next((path for path in (f"{folder}/index.html", f"{folder}.html") if path in self.paths), here)


@dataclass(frozen=True)
class Page:
    """A page. path: relative to the site's root, with "/" as separator; template: its file in `templates/`; context:
    returns the template's variables when the page is rendered. Each template also gets `root`, the relative path to the
    site's root, `here`, the page's path, `frame`, and the `board` of the frame."""

    path: str
    template: str
    context: Callable[[], Mapping[str, Any]]
    frame: Frame | None = None

    def render(self) -> bytes:
        """Return the page as UTF-8."""
        board = None if self.frame is None else self.frame.board
        shared = {"root": "../" * self.path.count("/"), "here": self.path, "frame": self.frame, "board": board}
        return get_environment().get_template(self.template).render(shared, **self.context()).encode()


@dataclass(frozen=True)
class Asset:
    """A file that pages refer to. render: returns its bytes."""

    path: str
    render: Callable[[], bytes]


@cache
def get_environment() -> Environment:
    """Return the environment of all templates. Raises `MissingExtra` without Jinja2."""
    try:
        from jinja2 import DictLoader, Environment, StrictUndefined
    except ImportError as error:
        raise MissingExtra("the board's pages", "board") from error
    folder = files(__package__.rpartition(".")[0]) / "templates"
    texts = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".html")}
    templates = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_value,  # codespell:ignore finalize
    )
    templates.filters |= {
        "score": format_score,
        "interval": format_interval,
        "signed": format_difference,
        "p": format_p_value,
        "words": describe_estimate,
        "papers": link_papers,
    }
    templates.tests["measured"] = is_measured
    templates.globals |= {
        "version": get_version(),
        "range_of": format_range,
        "scale_of": make_strip_scale,
        "rank_bar": compute_rank_bar,
        "letter_columns": list_tie_letters,
        "split": split_letters,
        "unit": Axis(-1.0, 1.0, _EDGE, STRIP - _EDGE),
        "key": draw_legend_key,
        "NOT_LEARNT": MARK,
        "STRIP": STRIP,
        "BAR": BAR,
    }
    return templates


def _escape_value(value: Any) -> Any:
    """Escape a value for a page. Only markup made by this package is marked as safe."""
    return escape_untrusted(value, LINES) if type(value) is str else value


def format_score(value: float, bounds: Sequence[float] | None, more: int = 0) -> str:
    """Format a score for a table: in percent with one decimal, or with four digits. more: additional digits."""
    text = f"{100 * value:z.{1 + more}f}" if tuple(bounds or ()) == SHARE else f"{value:z.{4 + more}g}"
    return text.replace("-", MINUS, text.startswith("-"))


def format_interval(estimate: Any, bounds: Sequence[float] | None) -> str:
    """Format the interval of an estimate in brackets."""
    return f"[{format_score(estimate.low, bounds)}, {format_score(estimate.high, bounds)}]"


def format_difference(value: float, bounds: Sequence[float] | None) -> str:
    """Format a difference with its sign, using the Unicode minus."""
    text = format_score(value, bounds)
    return text if text.startswith(MINUS) else f"+{text}"


def format_p_value(p: float) -> str:
    """Format a p-value with two digits."""
    return f"{p:.2g}" if p >= 0.0001 else "<\N{NO-BREAK SPACE}0.0001"


def format_range(low: float, high: float) -> str:
    """Format ranks or severities: one value, or the first and the last."""
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"


def describe_estimate(estimate: Any) -> str:
    """Format an estimate, or the JSON of one, as text."""
    return format_estimate(read_interval(estimate) if isinstance(estimate, dict) else estimate)


def is_measured(estimate: Any) -> bool:
    """Return whether this is an estimate and not the reason for a missing one."""
    return "value" in estimate if isinstance(estimate, dict) else isinstance(estimate, Estimate)


def link_papers(citation: str) -> Iterator[tuple[str, str]]:
    """Split a citation into pieces, each with the address that it names, or an empty text."""
    end = 0
    for match in _PAPER.finditer(citation):
        yield citation[end : match.start()], ""
        yield match[0], f"https://arxiv.org/abs/{match[2]}" if match["arxiv"] else f"https://doi.org/{match[4]}"
        end = match.end()
    yield citation[end:], ""


def make_strip_scale(table_view: Table) -> Axis:
    """Return the scale of a table's strips: 0 to 1 for shares, else from the lowest to the highest end of an
    interval."""
    scores = [row.standing.score for row in table_view.rows]
    if scores[0].bounds == SHARE:
        return Axis(0.0, 1.0, _EDGE, STRIP - _EDGE)
    ends = [estimate for score in scores for estimate in (score.id, score.ood)]
    low, high = min(interval.low for interval in ends), max(interval.high for interval in ends)
    return Axis(low, high, _EDGE, STRIP - _EDGE)


def compute_rank_bar(row: Row, ranked: int) -> dict[str, float] | None:
    """Return the start and width of a rank set's bar; None without a rank set."""
    if row.rank is None:
        return None
    low, high = row.rank
    step = BAR / ranked
    return {"x": round((low - 1) * step, 1), "width": round(max((high - low + 1) * step, 3.0), 1)}


def split_letters(ties: str) -> list[str]:
    """Return the letters of an entry's tie groups; letters of two characters are separated by spaces."""
    return ties.split() if " " in ties else list(ties)


def list_tie_letters(table_view: Table) -> list[str]:
    """Return the letters of a table's tie groups in order."""
    letters = {letter for row in table_view.rows for letter in split_letters(row.ties)}
    return sorted(letters, key=lambda letter: (len(letter), letter))
