"""A browser, and a small board's site served from its static files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from browsing import chromium, served, visit
from farshift.leaderboard.publish.site import Site, write_site

Opened = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium for all tests."""
    with chromium() as result:
        yield result


@pytest.fixture(scope="session")
def made_site() -> Site:
    """The site of a small board with all five kinds of shift."""
    from made_board import small_board

    return Site(small_board())


@pytest.fixture(scope="session")
def site_folder(made_site, tmp_path_factory) -> Path:
    """The site's files."""
    where = tmp_path_factory.mktemp("site")
    write_site(made_site, where)
    return where


@pytest.fixture(scope="session")
def address(site_folder) -> Iterator[str]:
    """The address of the small board's site."""
    with served(site_folder) as result:
        yield result


@pytest.fixture
def opened(browser, address) -> Opened:
    """`opened(path, width=.., scheme=..)`: a page of the site as a context. It fails where the page asks for anything
    elsewhere, or writes an error to the console."""
    return partial(visit, browser, address)
