"""One page of a board's site: where it lies, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .environment import get_environment
from .frame import Frame


class File(Protocol):
    """A file of a site. path: below the site's root, parted by "/"."""

    @property
    def path(self) -> str: ...

    def render(self) -> bytes:
        """Its bytes."""
        ...


@dataclass(frozen=True)
class Page:
    """A page. template: its file in `templates/`; context: what the template shows, made when the page is rendered.
    Besides it every template is given `root`, the relative way to the site's root, `here`, the page's path, and
    `frame`, what all pages of its site have around them."""

    path: str
    template: str
    context: Callable[[], Mapping[str, Any]]
    frame: Frame | None = None

    def render(self) -> bytes:
        """The page as UTF-8."""
        variables = {"root": "../" * self.path.count("/"), "here": self.path, "frame": self.frame, **self.context()}
        return get_environment().get_template(self.template).render(variables).encode()


@dataclass(frozen=True)
class Asset:
    """A file that pages refer to, as it lies in the package."""

    path: str
    content: bytes

    def render(self) -> bytes:
        """Its bytes."""
        return self.content
