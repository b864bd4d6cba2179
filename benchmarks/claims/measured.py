"""A measured quantity of a claim: a value and its interval, in words and as a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

Value = int | float | str

EXACT = "exact: of all rows"


@dataclass(frozen=True)
class Measured:
    """A value, the ends of its interval (its own value where it is exact), and what the interval is over. `why`: where
    there is none, the reason."""

    value: Value
    low: float = nan
    high: float = nan
    interval: str = ""
    per_seed: tuple[float, ...] = ()
    why: str = ""

    @property
    def known(self) -> bool:
        return not self.why

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals."""
        if self.why:
            return {"n/a": self.why}
        if isinstance(self.value, str | int):
            return {"value": self.value, "interval": self.interval}
        ends = {"value": self.value, "low": self.low, "high": self.high}
        rounded = {name: round(one, 6) for name, one in ends.items()}
        seeds = {"per_seed": [round(one, 6) for one in self.per_seed]} if self.per_seed else {}
        return rounded | {"interval": self.interval} | seeds

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Measured:
        """What `to_dict` wrote."""
        if "n/a" in record:
            return cls(nan, why=record["n/a"])
        ends = [record.get(name, record["value"]) for name in ("low", "high")]
        low, high = (float(one) if isinstance(one, int | float) else nan for one in ends)
        return cls(record["value"], low, high, record["interval"], tuple(record.get("per_seed", ())))


def exact(value: Value) -> Measured:
    """A value that has no noise."""
    at = float(value) if not isinstance(value, str) else nan
    return Measured(value, at, at, EXACT)


def shown(found: Measured) -> str:
    """A value with its interval."""
    if found.why:
        return f"n/a ({found.why})"
    if isinstance(found.value, str | int):
        return str(found.value)
    if found.low == found.high:
        return f"{found.value:.4g}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
