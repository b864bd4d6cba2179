"""Sources of one's own, pinned in this process."""

from __future__ import annotations

from pathlib import Path

from farshift.core.files import write_atomically
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.own_source import lock_source, prepare_source
from farshift.loaders.acquire.source import Source


def pin_source(data: Data, name: str, beside: Path, home: Path) -> Source:
    """The source that a draft's data make, with its file, as a build writes it."""
    with lock_source(name, home):
        pinned = prepare_source(data, name, beside, home)
        if pinned.content is not None:
            write_atomically(pinned.source.path, pinned.content)
        return pinned.source
