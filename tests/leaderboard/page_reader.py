"""Pages as they are read: tags that do not close, ids, links, tables, the text that a visitor sees."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import PurePosixPath
from posixpath import normpath

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Read(HTMLParser):
    """What a page says. wrong: markup that is not whole, that a page's policy forbids, or pictures without words;
    loaded: what it loads; text: all that is shown."""

    def __init__(self, page: bytes | str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.cells: list[list[str]] = []
        self.said: list[str] = []
        self.feed(page.decode() if isinstance(page, bytes) else page)
        self.wrong += [f"never closed: {tag}" for tag in self.open]
        self.wrong += [f"{name} twice" for name in set(self.ids) if self.ids.count(name) > 1]

    def handle_starttag(self, tag, attrs):
        output = dict(attrs)
        self.ids += [output["id"]] if "id" in output else []
        self.links += [output["href"]] if tag == "a" and "href" in output else []
        self.loaded += [output[name] for name in ("src", "href") if name in output and tag in ("script", "link", "img")]
        self.wrong += [f"{name} within the page" for name in output if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in output):
            self.wrong.append(f"{tag} within the page")
        if tag == "svg" and not output.get("aria-label") and "aria-hidden" not in output:
            self.wrong.append("a picture without words")
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th") and self.cells:
            self.cells[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        if tag not in VOID:
            return
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data):
        self.said.append(data)
        if {"td", "th"} & set(self.open) and self.cells and self.cells[-1]:
            self.cells[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


def list_defects(site, is_board_file: Callable[[str], bool] = lambda path: False) -> list[tuple[str, str]]:
    """What is wrong with the pages of a site: markup, and links that lead nowhere."""
    read = {path: Read(page.render()) for path, page in site.pages.items() if path.endswith(".html")}
    defects = [(path, item) for path, page in read.items() for item in page.wrong]
    for path, page in read.items():
        for link in [*page.links, *page.loaded]:
            target, _, anchor = link.partition("#")
            target = target if "://" in link else target.partition("?")[0]
            target = normpath((PurePosixPath(path).parent / target).as_posix()) if target else path
            there = target in site.pages and (not anchor or anchor in read[target].ids)
            if "://" not in link and not there and not is_board_file(target):
                defects.append((path, link))
    return defects
