"""Instances of the algorithmic tasks, small enough to check each by hand or by force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from farshift.loaders.generators.algorithmic import rows


def instances(task: str, sizes: Iterable[int], each: int = 20, measure: str = "length", **options: Any) -> list[dict]:
    """Up to `each` different instances of `task` ("file/function") of every size, one dictionary a row."""
    ranges = [{"first": size, "last": size, "each": each} for size in sizes]
    return rows(task=task, seed="test", sizes=ranges, measure=measure, options=options).to_pylist()
