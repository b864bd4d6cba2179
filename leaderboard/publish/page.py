"""A page of a board's site: a path, a template, and the template's variables; and the environment of the templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ...benchmarks.scoring.trained_check import MARK
from ...core.errors import MissingExtra
from ...core.settings import get_version
from ...core.text import LINES, escape_untrusted
from ..tables.snapshot import Snapshot
from . import display
from .svg import draw_legend_key

if TYPE_CHECKING:
    from jinja2 import Environment

INDEX = "index.html"

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
    """What the pages of a site share. paths: all files of the site.

    Of the board, the frame around a page shows only the name. So a new record changes few pages, and browsers keep the
    others cached by their entity tags."""

    board: Snapshot
    paths: frozenset[str]

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
        "score": display.format_score,
        "interval": display.format_interval,
        "signed": display.format_difference,
        "p": display.format_p_value,
        "words": display.describe_estimate,
        "papers": display.link_papers,
    }
    templates.tests["measured"] = display.is_measured
    templates.globals |= {
        "version": get_version(),
        "range_of": display.format_range,
        "scale_of": display.make_strip_scale,
        "rank_bar": display.compute_rank_bar,
        "letter_columns": display.list_tie_letters,
        "split": display.split_letters,
        "unit": display.Scale(-1.0, 1.0),
        "key": draw_legend_key,
        "NOT_LEARNT": MARK,
        "STRIP": display.STRIP,
        "BAR": display.BAR,
    }
    return templates


def _escape_value(value: Any) -> Any:
    """Escape a value for a page. Only markup made by this package is marked as safe."""
    return escape_untrusted(value, LINES) if type(value) is str else value
