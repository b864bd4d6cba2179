"""A page of a board's site: its path and its content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .environment import get_environment
from .frame import Frame


class File(Protocol):
    """A file of a site. path: relative to the site's root, with "/" as separator."""

    @property
    def path(self) -> str: ...

    def render(self) -> bytes:
        """Its bytes."""
        ...


@dataclass(frozen=True)
class Page:
    """A page. template: its file in `templates/`; context: returns the template's variables when the page is rendered.
    Each template also gets `root`, the relative path to the site's root, `here`, the page's path, and `frame`, the
    frame of the site's pages."""

    path: str
    template: str
    context: Callable[[], Mapping[str, Any]]
    frame: Frame | None = None

    def render(self) -> bytes:
        """Return the page as UTF-8."""
        variables = {"root": "../" * self.path.count("/"), "here": self.path, "frame": self.frame, **self.context()}
        return get_environment().get_template(self.template).render(variables).encode()


@dataclass(frozen=True)
class Asset:
    """A static file of the package that pages refer to."""

    path: str
    content: bytes

    def render(self) -> bytes:
        """Its bytes."""
        return self.content
