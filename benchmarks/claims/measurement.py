"""A measured quantity of a claim: a value and its interval, as text and as a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

Value = int | float | str

EXACT = "exact: of all rows"


@dataclass(frozen=True)
class Measurement:
    """A value, the ends of its interval (equal to the value if it is exact), and a description of the interval. `why`:
    the reason if there is no value."""

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
        rounded = {name: round(number, 6) for name, number in ends.items()}
        seeds = {"per_seed": [round(number, 6) for number in self.per_seed]} if self.per_seed else {}
        return rounded | {"interval": self.interval} | seeds

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Measurement:
        """What `to_dict` wrote."""
        if "n/a" in record:
            return cls(nan, why=record["n/a"])
        ends = [record.get(name, record["value"]) for name in ("low", "high")]
        low, high = (float(end) if isinstance(end, int | float) else nan for end in ends)
        return cls(record["value"], low, high, record["interval"], tuple(record.get("per_seed", ())))


def make_exact(value: Value) -> Measurement:
    """Make a measurement of an exact value."""
    at = float(value) if not isinstance(value, str) else nan
    return Measurement(value, at, at, EXACT)


def format_measurement(measurement: Measurement) -> str:
    """Format a value with its interval."""
    if measurement.why:
        return f"n/a ({measurement.why})"
    if isinstance(measurement.value, str | int):
        return str(measurement.value)
    if measurement.low == measurement.high:
        return f"{measurement.value:.4g}"
    return f"{measurement.value:.3f} [{measurement.low:.3f}, {measurement.high:.3f}]"
