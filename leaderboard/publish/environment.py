"""The Jinja2 environment of a board's pages: templates, filters and functions."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ...benchmarks.scoring.trained_check import MARK
from ...core.errors import MissingExtra
from ...core.listings.untrusted_text import LINES, escape_untrusted
from ...core.version import get_version
from . import page_graphics as graphics
from .figures.svg import draw_legend_key

if TYPE_CHECKING:
    from jinja2 import Environment


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
        "score": graphics.format_score,
        "finer": graphics.format_precise_score,
        "signed": graphics.format_difference,
        "words": graphics.describe_estimate,
    }
    templates.tests["measured"] = graphics.is_measured
    templates.globals |= {
        "version": get_version(),
        "scale_of": graphics.make_strip_scale,
        "rank_bar": graphics.compute_rank_bar,
        "letter_columns": graphics.list_tie_letters,
        "split": graphics.split_letters,
        "unit": graphics.Scale(-1.0, 1.0),
        "key": draw_legend_key,
        "NOT_LEARNT": MARK,
        "STRIP": graphics.STRIP,
        "BAR": graphics.BAR,
    }
    return templates


def _escape_value(value: Any) -> Any:
    """Escape a value for a page. Only markup made by this package is marked as safe."""
    return escape_untrusted(value, LINES) if type(value) is str else value
