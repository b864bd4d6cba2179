"""The templates of a board's pages, and what they may call."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ...benchmarks.scoring.learnt import MARK
from ...core.errors import MissingExtra
from ...core.listings.visible import LINES, visible
from ...core.version import version
from . import page_pictures as pictures
from .figures.drawing import key

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> Environment:
    """The environment of all templates. `MissingExtra` without Jinja2."""
    try:
        from jinja2 import DictLoader, Environment, StrictUndefined
    except ImportError as error:
        raise MissingExtra("the board's pages", "board") from error
    folder = files(__package__.rpartition(".")[0]) / "templates"
    texts = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".html")}
    pages = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,  # codespell:ignore finalize
    )
    pages.filters |= {
        "score": pictures.shown,
        "finer": pictures.finer,
        "signed": pictures.signed,
        "words": pictures.words,
    }
    pages.tests["measured"] = pictures.is_measured
    pages.globals |= {
        "version": version(),
        "scale_of": pictures.scale_of,
        "rank_bar": pictures.rank_bar,
        "letter_columns": pictures.letter_columns,
        "split": pictures.split,
        "unit": pictures.Scale(-1.0, 1.0),
        "key": key,
        "NOT_LEARNT": MARK,
        "STRIP": pictures.STRIP,
        "BAR": pictures.BAR,
    }
    return pages


def _seen(value: Any) -> Any:
    """A value as a page may show it. What is marked as safe was made here."""
    return visible(value, LINES) if type(value) is str else value
