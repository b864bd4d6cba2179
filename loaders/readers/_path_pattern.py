"""Names of files with named parts: `{domain}/{category}/{file}`.

A part is a piece of one folder's or file's name, as short as what follows it allows; the last part of a pattern may
hold any rest, folders too, where it is called `file`. `{name:REGEX}` says what a part looks like, `*` is a part without
a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.errors import BadDefinition

REST = "file"

_TOKEN = re.compile(r"\{(?P<name>[a-z][a-z0-9_]*)(?::(?P<form>(?:[^{}]|\{\d+(?:,\d*)?\})+))?\}|(?P<star>\*)")


class PathPattern:
    """What a path must look like, and the parts that it names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[str] = []
        whole, end = "", 0
        for token in _TOKEN.finditer(text):
            whole += _plain(text, text[end : token.start()])
            end = token.end()
            if token["star"]:
                whole += "[^/]*?"
                continue
            name = token["name"]
            if name in self.parts:
                raise BadDefinition(f"the pattern {text!r} names {{{name}}} twice")
            self.parts.append(name)
            form = token["form"] or (".+" if name == REST and end == len(text) else "[^/]+?")
            whole += f"(?P<{name}>{form})"
        whole += _plain(text, text[end:])
        try:
            self._whole = re.compile(whole)
        except re.error as error:
            raise BadDefinition(f"the pattern {text!r} is none: {error}") from error

    def fits(self, path: str) -> dict[str, str] | None:
        """The named parts of a path; None where it does not fit."""
        found = self._whole.fullmatch(path)
        return found.groupdict() if found else None

    def filled(self, values: Mapping[str, str]) -> str:
        """The path that has these parts. Each part of the pattern needs a value."""
        if "*" in self.text:
            raise BadDefinition(f"the pattern {self.text!r} has a part without a name, which no row can fill")
        return _TOKEN.sub(lambda token: values[token["name"]], self.text)


def _plain(text: str, piece: str) -> str:
    if "{" in piece or "}" in piece:
        raise BadDefinition(
            f"the pattern {text!r} is none: a part is {{name}} or {{name:REGEX}}, its name of lower-case letters"
        )
    return re.escape(piece)
