"""Docstrings of the package as Markdown: examples become code, and arguments a list.

An extension of griffe, which mkdocstrings reads the source with.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^>>> .*(?:\n(?!\s*$).*)*\n?)+", re.MULTILINE)
"""Lines from `>>>` to the next empty one, with what is printed."""


class DocstringsAsMarkdown(griffe.Extension):
    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        render(func, [parameter.name.lstrip("*") for parameter in func.parameters])

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        initialiser = cls.members.get("__init__")
        arguments = [item.name for item in getattr(initialiser, "parameters", ())]
        render(cls, [*cls.members, *arguments])

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        render(mod, [])


def render(item: griffe.Object, names: list[str]) -> None:
    """Rewrite the docstring of a function, class or module. names: its arguments or attributes."""
    if item.docstring is None:
        return
    text = _EXAMPLE.sub(lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", item.docstring.value)
    paragraphs = re.split(r"\n\s*\n", text)
    item.docstring.value = "\n\n".join(list_arguments(paragraph.strip("\n"), names) for paragraph in paragraphs)


def list_arguments(paragraph: str, names: list[str]) -> str:
    """A paragraph of `name: meaning. other: meaning. Raises ..` as a list, and what is raised; any other as it is."""
    if not names or paragraph.startswith("```"):
        return paragraph
    start = re.compile(rf"(?:^|(?<=[.)] )|(?<=[.)]\n))`?({'|'.join(map(re.escape, names))})`?: ", re.MULTILINE)
    if not start.search(paragraph):
        return paragraph
    paragraph, *raised = re.split(r"\s(?=Raises )", paragraph, maxsplit=1)
    before, *rest = start.split(paragraph)
    items = zip(rest[::2], rest[1::2], strict=True)
    lines = [f"- `{name}`: {textwrap.fill(' '.join(meaning.split()), 110)}" for name, meaning in items]
    return "\n".join([before.rstrip(), "", *(line.replace("\n", "\n  ") for line in lines), "", *raised]).strip()
