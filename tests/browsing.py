"""Pages in a real browser: served on this machine, opened, and looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium with a profile of its own; skips the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("there is no /usr/bin/chromium")
    with playwright.sync_playwright() as driver:
        result = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield result
        result.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder's files on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def visit(
    browser: Any, address: str, path: str, width: int = 1600, scheme: str = "light", **more: Any
) -> Iterator[Any]:
    """A page below an address, in a window of its own."""
    wrong: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)

    def only_here(route: Any) -> None:
        url = route.request.url
        if url.startswith((address, "data:")):
            route.continue_()
        else:
            wrong.append(f"asks for {url}")
            route.abort()

    context.route("**/*", only_here)
    page = context.new_page()
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    try:
        page.goto(address + path)
        yield page
    finally:
        context.close()
    assert wrong == [], path


def overflow(page: Any) -> int:
    """How many pixels a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def serious(page: Any) -> list[str]:
    """What axe-core finds on a page that is serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    result = axe.Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {item['help']}: {node['target']}"
        for item in result
        if item["impact"] in ("serious", "critical")
        for node in item["nodes"][:3]
    ]
