"""Characters that look alike, by Unicode's own table, and the skeleton of a text: two texts that people confuse have
one skeleton.

`confusables.txt` beside this file holds the mappings of Unicode 17.0.0 (confusables.txt of UTS 39, (c) 2025 Unicode,
Inc., under the terms of https://www.unicode.org/license.txt), as code points and nothing else. To make it
anew of a newer edition: `python -m farshift.leaderboard.confusables < confusables.txt > leaderboard/confusables.txt`.

Source: Unicode Technical Standard 39, Unicode Security Mechanisms, section 4, Confusable Detection.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path


def skeleton(text: str) -> str:
    """What is left of a text for comparing: decomposed, without what is not seen, each character replaced by the one
    that stands for all that look like it (UTS 39, internalSkeleton)."""
    seen = (char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Cf")
    table = _table()
    return unicodedata.normalize("NFD", "".join(table.get(char, char) for char in seen))


@lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    lines = Path(__file__).with_suffix(".txt").read_text("ascii").splitlines()
    pairs = (line.split(" ", 1) for line in lines)
    return {chr(int(one, 16)): "".join(chr(int(code, 16)) for code in to.split()) for one, to in pairs}


def compact(lines: Iterable[str]) -> Iterator[str]:
    """The lines of `confusables.txt` here, sorted, from those of Unicode's file of that name: `0430 61`."""
    found = {}
    for line in lines:
        fields = line.lstrip("\N{ZERO WIDTH NO-BREAK SPACE}").split("#")[0].split(";")
        if len(fields) > 1:
            found[int(fields[0], 16)] = [int(code, 16) for code in fields[1].split()]
    for source, target in sorted(found.items()):
        yield " ".join(f"{code:X}" for code in (source, *target))


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in compact(sys.stdin)))
