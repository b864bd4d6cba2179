"""Explicit missing values: a number that is not available, with the reason, instead of zero or NaN."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

KEY = "n/a"
"""The only key of its JSON form."""

T = TypeVar("T")


@dataclass(frozen=True)
class NotAvailable:
    """The placeholder for an estimate that is not defined, or too uncertain to be reported."""

    reason: str

    def to_dict(self) -> dict[str, str]:
        """Plain JSON."""
        return {KEY: self.reason}


def read_available(read: Callable[[Mapping[str, Any]], T], record: Mapping[str, Any]) -> T | NotAvailable:
    """Apply `read` to a JSON record; `NotAvailable` if the record is a reason instead."""
    return NotAvailable(str(record[KEY])) if KEY in record else read(record)
