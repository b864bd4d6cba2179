"""Pages as they are read: tags that do not close, ids, links, tables, the text that a visitor sees."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Read(HTMLParser):
    """What a page says. wrong: markup that is not whole; loaded: what it loads; text: all that is shown."""

    def __init__(self, page: bytes | str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self.cells: list[list[str]] = []
        self.said: list[str] = []
        self.feed(page.decode() if isinstance(page, bytes) else page)
        self.wrong += [f"never closed: {tag}" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        output = dict(attrs)
        self.ids += [output["id"]] if "id" in output else []
        self.links += [output["href"]] if tag == "a" and "href" in output else []
        self.loaded += [output[name] for name in ("src", "href") if name in output and tag in ("script", "link", "img")]
        self.inline += [name for name in output if name == "style" or name.startswith("on")]
        if tag == "script" and "src" not in output:
            self.inline.append("script")
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th") and self.cells:
            self.cells[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

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
