"""One item after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


def mapped(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    return (function(item) for item in items)
