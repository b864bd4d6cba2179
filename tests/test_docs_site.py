"""The site of docs/: the Python interface has every public name, and docstrings are Markdown there.

`make docs` builds it, and fails for a link that leads nowhere.
"""

from __future__ import annotations

import farshift
import pytest
from support import ROOT

pytest.importorskip("mkdocstrings_handlers.python")

import griffe
import site_docstrings
import site_hooks

DOCSTRING = """Do a thing.

left: the one. right: the other, over
  two lines. Raises `ValueError` for neither.

>>> do(1, 2)
3
"""


def render(names: str, text: str) -> str:
    function = griffe.Function("do", parameters=griffe.Parameters(*map(griffe.Parameter, names.split())))
    function.docstring = griffe.Docstring(text)
    site_docstrings.render(function, names.split())
    return function.docstring.value


def test_arguments_become_a_list_and_examples_code():
    assert render("left right", DOCSTRING) == (
        "Do a thing.\n\n- `left`: the one.\n- `right`: the other, over two lines.\n\n"
        "Raises `ValueError` for neither.\n\n```pycon\n>>> do(1, 2)\n3\n```"
    )


def test_prose_stays_prose():
    text = "Do a thing: with left: no list.\n\nAnother paragraph."
    assert render("left right", text) == text


def test_every_public_name_is_in_one_topic():
    pages = site_hooks.build_api_pages()
    text = "".join(pages[name] for name in pages if name != "api.md")
    for name in farshift.__all__:
        assert text.count(f"heading: fs.{name}\n") == 1, name
        assert f"[{name}](api-" in pages["api.md"]


def test_the_navigation_has_every_topic():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert all(name in navigation for name in site_hooks.build_api_pages())
