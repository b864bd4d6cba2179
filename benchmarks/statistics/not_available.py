"""A number that is not available, and why: never a zero, never a NaN that gets sorted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

KEY = "n/a"
"""The one key of the JSON that stands for it."""

T = TypeVar("T")


@dataclass(frozen=True)
class NotAvailable:
    """What stands in the place of an estimate that is not defined, or too uncertain to be shown."""

    reason: str

    def to_dict(self) -> dict[str, str]:
        """Plain JSON."""
        return {KEY: self.reason}


def read_available(read: Callable[[Mapping[str, Any]], T], record: Mapping[str, Any]) -> T | NotAvailable:
    """What `read` makes of a JSON record; `NotAvailable` where the record is a reason instead."""
    return NotAvailable(str(record[KEY])) if KEY in record else read(record)
