"""A number that cannot be had, and why: never a zero, never a NaN that gets sorted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NotAvailable:
    """What stands in the place of an estimate that is not defined, or too unsure to be shown."""

    reason: str

    def record(self) -> dict[str, str]:
        """Plain JSON."""
        return {"n/a": self.reason}
