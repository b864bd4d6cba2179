"""Screenshots of every kind of page: all widths and both colour schemes into build/screenshots/ (of a made-up board), and
small ones for the documentation into docs/figures/ (`--docs SITE`, the folder of a board's site: `make screenshots`).

    python tests/web/screenshots.py [--docs build/screenshot-board/site]
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browsing import chromium, served, visit  # noqa: E402

WIDTHS, SCHEMES = (360, 800, 1600), ("light", "dark")

SHOWN = {
    "home": ("index.html", 1440, 1200),
    "benchmark": ("benchmarks/scan/length.html", 1440, 1500),
    "shift": ("benchmarks/optdigits/writers.html#shift", 1280, 1000),
    "benchmarks": ("benchmarks/index.html", 1280, 900),
    "entry": ("benchmarks/scan/length.html entries/", 1280, 1500),
    "compare": ("entries/ compare/", 1280, 1100),
    "team": ("entries/ teams/", 1280, 800),
    "submit": ("submit.html", 1280, 1200),
    "windows": ("windows.html", 1280, 700),
    "ledger": ("ledger.html", 1280, 1200),
    "records": ("ledger.html ledger/", 1280, 900),
    "about": ("about.html", 1000, 900),
    "statistics": ("statistics.html", 1000, 900),
}
"""The documentation's pictures: the page, and the width and height that are shown of it. A page may be named by another
one and the folder of its first link there; that of entries is the best of SCAN's length."""

MOST_BYTES = 150_000


def main() -> None:
    from farshift.leaderboard.publish.site import Site, write_site
    from made_board import small_board

    requested = argparse.ArgumentParser()
    requested.add_argument("--docs", type=Path, metavar="SITE")
    docs = requested.parse_args().docs
    with TemporaryDirectory() as folder, chromium() as browser:
        if docs is None:
            write_site(Site(small_board()), Path(folder))
        site = docs or Path(folder)
        with served(site) as address:
            (_every if docs is None else _document)(browser, address, site)


def found(folder: Path, said: str) -> str:
    """The path of a page of SHOWN."""
    page, _, linked = said.partition(" ")
    if not linked:
        return page
    if page == "entries/":
        page = found(folder, SHOWN["entry"][0])
    links = re.findall(r'href="(?:\.\./)*([^":#]+\.html)"', (folder / page).read_text("utf-8"))
    return next(link for link in links if link.startswith(linked) and not link.endswith("index.html"))


def _document(browser: object, address: str, folder: Path) -> None:
    for name, (output, width, height) in SHOWN.items():
        path, _, anchor = found(folder, output).partition("#")
        with visit(browser, address, path, width, reduced_motion="reduce") as page:
            page.set_viewport_size({"width": width, "height": height})
            if anchor:
                page.locator(f"#{anchor}").evaluate("one => one.scrollIntoView()")
            small(page.screenshot(), ROOT / "docs" / "figures" / f"board-{name}.png")


def small(content: bytes, out: Path) -> None:
    """Write a screenshot with 200 colours, in three quarters of its size; with fewer where it would be too large."""
    from io import BytesIO

    from PIL import Image

    with Image.open(BytesIO(content)) as shot:
        size = (shot.width * 3 // 4, shot.height * 3 // 4)
        full = shot.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    for colours in (200, 64, 24):
        full.quantize(colours, method=Image.Quantize.FASTOCTREE).save(
            out,
            optimize=True,  # codespell:ignore optimize
        )
        if out.stat().st_size <= MOST_BYTES:
            break
    else:
        raise SystemExit(f"{out} has {out.stat().st_size:,} bytes; at most {MOST_BYTES:,} are wanted")
    print(out, out.stat().st_size)


def _every(browser: object, address: str, folder: Path) -> None:
    pages = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.html"))]
    entries = [path for path in pages if path.startswith(("entries/", "compare/"))]
    for path in [path for path in pages if path not in entries[1:]]:
        for width in WIDTHS:
            for scheme in SCHEMES:
                out = (
                    ROOT
                    / "build"
                    / "screenshots"
                    / f"{path.removesuffix('.html').replace('/', '-')}-{width}-{scheme}.png"
                )
                out.parent.mkdir(parents=True, exist_ok=True)
                with visit(browser, address, path, width, scheme) as page:
                    page.screenshot(path=str(out), full_page=True)
                print(out)


if __name__ == "__main__":
    main()
