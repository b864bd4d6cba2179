"""Pages that were rendered, kept compressed: so many bytes of them, those that were asked for last."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from .answers import Packed


class PageMemory:
    """Pages by path, of at most `most` bytes in all. For any number of threads, none of which waits for a rendering."""

    def __init__(self, most: int) -> None:
        self.most, self._bytes = most, 0
        self._pages: OrderedDict[str, Packed] = OrderedDict()
        self._lock = Lock()

    def get(self, path: str) -> Packed | None:
        with self._lock:
            if path in self._pages:
                self._pages.move_to_end(path)
            return self._pages.get(path)

    def put(self, path: str, page: Packed) -> None:
        with self._lock:
            if path in self._pages:
                self._bytes -= self._pages.pop(path).held
            self._pages[path] = page
            self._bytes += page.held
            while self._bytes > self.most and len(self._pages) > 1:
                self._bytes -= self._pages.popitem(last=False)[1].held

    def items(self) -> list[tuple[str, Packed]]:
        """What is there now, that which was asked for last at the end."""
        with self._lock:
            return list(self._pages.items())
