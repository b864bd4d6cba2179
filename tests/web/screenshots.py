"""Screenshots of every kind of page: all widths and both colour schemes into build/screenshots/, and small ones for the
documentation into docs/figures/ (`--docs`).

    python tests/web/screenshots.py [--docs]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browsing import chromium, served, visit  # noqa: E402

WIDTHS, SCHEMES = (360, 800, 1600), ("light", "dark")

SHOWN = {
    "home": ("index.html", 1440, 1200),
    "benchmark": ("benchmarks/scan/length.html", 1280, 1500),
    "benchmarks": ("benchmarks/index.html", 1280, 700),
    "statistics": ("statistics.html", 1000, 900),
    "about": ("about.html", 1000, 700),
}
"""The documentation's pictures: the page, and the width and height that are shown of it."""

MOST_BYTES = 120_000


def main() -> None:
    from farshift.leaderboard.publish.site import Site
    from farshift.leaderboard.publish.write import write_site
    from made_board import small_board

    asked = argparse.ArgumentParser()
    asked.add_argument("--docs", action="store_true")
    docs = asked.parse_args().docs
    with TemporaryDirectory() as folder, chromium() as browser:
        write_site(Site(small_board()), Path(folder))
        with served(Path(folder)) as address:
            (_document if docs else _every)(browser, address, Path(folder))


def _document(browser: object, address: str, folder: Path) -> None:
    del folder
    for name, (path, width, height) in SHOWN.items():
        with visit(browser, address, path, width) as page:
            page.set_viewport_size({"width": width, "height": height})
            small(page.screenshot(), ROOT / "docs" / "figures" / f"board-{name}.png")


def small(content: bytes, out: Path) -> None:
    """Write a screenshot with 200 colours, in three quarters of its size."""
    from io import BytesIO

    from PIL import Image

    with Image.open(BytesIO(content)) as shot:
        size = (shot.width * 3 // 4, shot.height * 3 // 4)
        shot.convert("RGB").resize(size, Image.Resampling.LANCZOS).quantize(200, method=Image.Quantize.FASTOCTREE).save(
            out,
            optimize=True,  # codespell:ignore optimize
        )
    if out.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{out} has {out.stat().st_size:,} bytes; at most {MOST_BYTES:,} are wanted")
    print(out)


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
